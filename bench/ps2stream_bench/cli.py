"""``ps2stream-bench``: measure figures, and make the report of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ps2stream.cli.interrupts import exit_code_of, raised_interrupts
from ps2stream_bench.figures import MODULES

#: As figure.SCALES, which would take a second to import.
_SCALES = ("tiny", "small", "paper")
_RESULTS = Path("bench-results")

_DESCRIPTION = """\
The benchmark of spatio-textual publish/subscribe: every figure of the PS2Stream paper, and more.

'run' measures a figure and keeps the raw rows, 'report' makes pages and plots of the rows. A run can be
stopped at any time: started again, it goes on with the cases that have no rows yet.
"""

_EPILOG = """\
examples:
  ps2stream-bench figures                              what there is
  ps2stream-bench run baselines --scale tiny           seconds: does it work here?
  ps2stream-bench run all                              less than an hour on two cores
  ps2stream-bench run hybrid --publications tweets.parquet
  ps2stream-bench report --out docs/paper
  ps2stream-bench generate publications.parquet --country uk --publications 10000000

exit status: 0 done; 1 a case failed, the others are kept; 2 wrong usage; 130 stopped
"""

_RUN = """\
Measure figures, case by case, in a fixed random order; contenders of a case take turns.

Rows go to RESULTS/SCALE/FIGURE/, a Parquet file for each case, written when the case is done. Cases that have
a file are kept, even if the code has changed since: --again measures them anew. The machine should have
nothing else to do. Only ratios within one run can be trusted.

scales:
  tiny    seconds for each figure: a check that everything works, no figures to quote
  small   minutes for each figure
  paper   the paper's sizes, millions of subscriptions: hours, and up to 24 GiB of memory
"""

_GENERATE = """\
Write publications like geo-tagged tweets of the US or the UK to a Parquet file (id, lat, lon, text), or with
--workload a whole event log for 'ps2stream replay': N subscriptions first, then publications and updates.

Places and words are fitted to figures of real tweets; --check prints those beside the generated ones. The
same seed gives the same file.
"""


class _Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Keep the lines of descriptions, and add the defaults of options."""


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(
        "ps2stream-bench",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_figures(commands)
    _add_run(commands)
    _add_report(commands)
    _add_generate(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    arguments = parser().parse_args(argv)
    try:
        # A request to terminate ends brokers and engines, too, as Ctrl-C does.
        with raised_interrupts():
            status: int = arguments.act(arguments)
    except KeyboardInterrupt as interrupt:
        print("stopped; what was measured is kept, the same command goes on from there", file=sys.stderr)
        return exit_code_of(interrupt)
    except _expected() as error:
        print(f"ps2stream-bench: {error}", file=sys.stderr)
        return 1
    return status


def _expected() -> tuple[type[Exception], ...]:
    """Return what is told in a line, without a trace: disks, and files that are not what they seem."""
    from pyarrow import ArrowInvalid

    from ps2stream.errors import PS2StreamError

    return OSError, ArrowInvalid, PS2StreamError


def _number(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers that are not smaller."""

    def read(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be {least} or more; got {text}")
        return value

    read.__name__ = "whole number"  # how argparse names it when int() refuses a text
    return read


def _add_figures(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("figures", help="list the figures", description="List the figures.")
    command.set_defaults(act=_figures)


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("run", help="measure figures", description=_RUN, formatter_class=_Help)
    add = command.add_argument
    add("figures", nargs="+", choices=["all", *MODULES], metavar="FIGURE", help="names of figures, or all")
    add("--scale", choices=_SCALES, default="small", help="how much is measured")
    add("--seed", type=_number(0), default=1, metavar="N", help="another one makes other workloads")
    add("--publications", type=Path, metavar="PARQUET", help="lat, lon, text; in place of generated ones")
    add("--again", action="store_true", help="measure what was measured before, too")
    _add_results(command)
    command.set_defaults(act=_run)


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "report",
        help="make pages and plots of what was measured",
        description="Make a page for each figure that was measured, and a summary of all claims.",
        formatter_class=_Help,
    )
    add = command.add_argument
    add("--out", type=Path, default=Path("bench-report"), metavar="DIR", help="where pages and plots go")
    add("--scale", choices=_SCALES, help="report this one; else the largest that is complete")
    add("--seed", type=_number(0), default=1, metavar="N", help="report what was measured with this one")
    add("--publications", type=Path, metavar="PARQUET", help="report what was measured with this file")
    _add_results(command)
    command.set_defaults(act=_report)


def _add_generate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "generate", help="write publications or an event log", description=_GENERATE, formatter_class=_Help
    )
    add = command.add_argument
    add("out", type=Path, metavar="PARQUET", help="the file to write")
    add("--country", choices=("us", "uk"), default="us", help="whose places and weights")
    add("--publications", type=_number(1), default=1_000_000, metavar="N", help="how many")
    add("--workload", choices=("q1", "q2", "q3", "drifting"), help="write an event log of this kind")
    add("--subscriptions", type=_number(1), default=100_000, metavar="N", help="live ones of an event log")
    add("--seed", type=_number(0), default=1, metavar="N", help="another one makes another file")
    add("--check", action="store_true", help="compare with the figures of real tweets")
    command.set_defaults(act=_generate)


def _add_results(command: argparse.ArgumentParser) -> None:
    command.add_argument("--results", type=Path, default=_RESULTS, metavar="DIR", help="where raw rows are")


def _figures(arguments: argparse.Namespace) -> int:
    from ps2stream_bench.figures import figures_named

    for figure in figures_named(["all"]):
        print(f"{figure.name:20}{figure.title}")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from ps2stream_bench.figure import Context
    from ps2stream_bench.figures import figures_named
    from ps2stream_bench.progress import Bars
    from ps2stream_bench.results import Results
    from ps2stream_bench.runner import run

    complaint = _complaint(arguments.publications)
    if complaint:
        print(f"--publications: {complaint}", file=sys.stderr)
        return 2
    arguments.results.mkdir(parents=True, exist_ok=True)
    with Bars(Console(stderr=True)) as bars:
        context = Context(arguments.seed, arguments.publications, bars.say)
        try:
            done = run(
                figures_named(arguments.figures),
                arguments.scale,
                context,
                Results(arguments.results),
                bars,
                again=arguments.again,
            )
        finally:
            context.close()
    print(
        f"{done.n_measured} cases measured, {done.n_kept} kept, {len(done.failures)} failed; rows are in "
        f"{arguments.results / arguments.scale}"
    )
    for failure in done.failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if done.failures else 0


def _report(arguments: argparse.Namespace) -> int:
    from ps2stream_bench.figures import figures_named
    from ps2stream_bench.report import reported, write
    from ps2stream_bench.results import Results
    from ps2stream_bench.runner import source_of

    complaint = _complaint(arguments.publications)
    if complaint:
        print(f"--publications: {complaint}", file=sys.stderr)
        return 2
    pages = reported(
        figures_named(["all"]),
        Results(arguments.results),
        arguments.scale,
        seed=arguments.seed,
        source=source_of(arguments.publications),
    )
    if not pages:
        print(
            f"there are no rows under {arguments.results}: measure with 'ps2stream-bench run'",
            file=sys.stderr,
        )
        return 2
    write(pages, arguments.out)
    verdicts = [verdict for page in pages for verdict in page.page.verdicts]
    n_held = sum(verdict.holds is True for verdict in verdicts)
    print(f"{len(pages)} pages in {arguments.out}; {n_held} of {len(verdicts)} claims hold")
    return 0


def _complaint(publications: Path | None) -> str | None:
    """Say what is wrong with a file of publications, before anything is measured with it."""
    if publications is None:
        return None
    if not publications.exists():
        return f"there is no file {publications}"
    from pyarrow import ArrowInvalid, dataset

    try:
        names = dataset.dataset(publications, format="parquet").schema.names
    except ArrowInvalid as error:
        return f"{publications} is no Parquet: {error}"
    lacking = [name for name in ("lat", "lon", "text") if name not in names]
    return f"{publications} lacks {', '.join(lacking)}; it has {', '.join(names)}" if lacking else None


def _generate(arguments: argparse.Namespace) -> int:
    from ps2stream_bench.generate import check, write_events, write_publications

    if not arguments.out.parent.is_dir():
        print(f"there is no directory {arguments.out.parent} for {arguments.out.name}", file=sys.stderr)
        return 2
    if arguments.workload:
        write_events(arguments)
    else:
        write_publications(arguments)
    if arguments.check:
        check(arguments)
    return 0
