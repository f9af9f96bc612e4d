"""``ps2stream partition``: a sample of an event log in, a plan out, and what can be said about it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ps2stream.cli.options.output_file import check_target
from ps2stream.cli.options.settings import add_plan_settings, settings_from
from ps2stream.cli.render.output import note, print_json
from ps2stream.errors import MissingExtraError
from ps2stream.extras import require

if TYPE_CHECKING:
    from ps2stream.cli.render.plan_figures import PlanFigures
    from ps2stream.config import Settings
    from ps2stream.partitioning.load import Costs
    from ps2stream.partitioning.plan import Plan
    from ps2stream.partitioning.sample import Sample

_DESCRIPTION = """\
Divide the load of a sample between workers, and show what the plan is like.

A sample is drawn from EVENTS, an event log as 'ps2stream replay' takes it. A partitioner (or each of them,
with --all) makes a plan of it, and the sample is routed and matched by that plan with the real indexes:
the figures are counted, not estimated. Loads are charged by the cost model (--load, --calibrate).

--draw makes a picture of the plan: a map of who owns what, and the load of each worker. --plan keeps the
plan for 'ps2stream replay --plan' and 'ps2stream run --plan'.
"""

_EPILOG = """\
examples:
  ps2stream partition events.parquet --all --workers 8
  ps2stream partition events.parquet --partitioner kd-tree --plan plan.npz --draw plan.png --draw plan.svg
  ps2stream partition events.parquet --all --draw plans/       NAME.png and NAME.svg for each partitioner
"""

_ENDINGS = (".png", ".svg")
#: Enough to go through every kernel; more would only take longer.
_WARM_ROWS = 2_000


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "partition",
        help="divide the load of a sample between workers, compare and draw plans",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("events", metavar="EVENTS", type=Path, help="Parquet file or directory")
    parser.add_argument("--all", action="store_true", help="compare all partitioners")
    parser.add_argument("--plan", metavar="FILE.npz", type=Path, help="save the plan; not with --all")
    parser.add_argument(
        "--draw",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="draw the plan as .png or .svg, may be repeated; with --all a directory",
    )
    parser.add_argument("--tree", action="store_true", help="print the tree of a plan that has one")
    parser.add_argument("--json", action="store_true", help="print one JSON object a plan")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_plan_settings(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    _check_usage(arguments)
    if arguments.draw:
        require("ps2stream partition --draw", "plot")
    from ps2stream.planning.first_plan import costs_of, log_sample
    from ps2stream.sources.event_log import EventLog

    settings = settings_from(arguments)
    _check_targets(arguments)
    log = EventLog(arguments.events)
    say = (lambda text: None) if arguments.quiet else note
    say(f"drawing a sample from {log.n_events:,} events")
    sample = log_sample(log, settings)
    say(
        f"sample: {sample.n_publications:,} publications; {sample.n_subscriptions:,} subscriptions "
        f"for {sample.n_live:,} live ones, {sample.churn:.3g} begin and end for a publication"
    )
    if arguments.calibrate:
        say("measuring costs")
    costs = costs_of(sample, settings)
    done = []
    for name in _all_partitioners() if arguments.all else (settings.partitioner,):
        say(f"{name}: planning")
        plan, build_s = _planned(name, sample, costs, settings, quiet=arguments.quiet)
        say(f"{name}: trying the plan")
        figures = _tried(plan, sample, costs, settings, build_s)
        _write(arguments, plan, sample, figures)
        if arguments.json:
            _print_json(arguments, plan, sample, costs, figures)
        done.append((plan, figures))
    if not arguments.json:
        _print_text(arguments, done)
    return 0


def _all_partitioners() -> list[str]:
    """Return the names of all partitioners that can be had here; tell which one cannot."""
    from ps2stream.partitioning import PARTITIONERS

    try:
        require("hypergraph", "hypergraph")
    except MissingExtraError as error:
        note(f"ps2stream: left out: {error}")
        return [name for name in PARTITIONERS if name != "hypergraph"]
    return list(PARTITIONERS)


def _check_usage(arguments: argparse.Namespace) -> None:
    for option in ("partitioner", "plan"):
        if arguments.all and getattr(arguments, option) is not None:
            arguments.parser.error(f"--all and --{option} exclude each other")


def _check_targets(arguments: argparse.Namespace) -> None:
    from ps2stream.errors import ConfigError

    if arguments.plan is not None:
        check_target("the plan", arguments.plan)
    for path in arguments.draw:
        if arguments.all:
            if path.exists() and not path.is_dir():
                raise ConfigError(f"with --all drawings need a directory; got the file {path}")
            path.mkdir(parents=True, exist_ok=True)
            check_target("a drawing", path / "NAME.png")
        elif path.suffix.lower() not in _ENDINGS:
            raise ConfigError(f"the name of a drawing must end in {' or '.join(_ENDINGS)}; got {path}")
        else:
            check_target("a drawing", path)


def _planned(
    name: str, sample: Sample, costs: Costs, settings: Settings, *, quiet: bool
) -> tuple[Plan, float]:
    """Return a plan and the seconds that it took, without those that kernels took to compile or load."""
    import time

    from ps2stream.cli.render.compilation import compilation_shown
    from ps2stream.kernels import one_compiler
    from ps2stream.partitioning import partitioner_named
    from ps2stream.planning.calibration import part_of

    partitioner = partitioner_named(name, costs)
    with compilation_shown(quiet=quiet), one_compiler():
        partitioner.plan(part_of(sample, _WARM_ROWS, _WARM_ROWS), settings.n_workers)
    started = time.perf_counter()
    plan = partitioner.plan(sample, settings.n_workers, seed=settings.sample_seed)
    return plan, time.perf_counter() - started


def _tried(plan: Plan, sample: Sample, costs: Costs, settings: Settings, build_s: float) -> PlanFigures:
    from ps2stream.cli.render.plan_figures import PlanFigures
    from ps2stream.planning.trial import try_plan

    return PlanFigures.of(plan, try_plan(plan, sample, settings), costs, build_s)


def _write(arguments: argparse.Namespace, plan: Plan, sample: Sample, figures: PlanFigures) -> None:
    """Save and draw a plan, where that was asked for."""
    if arguments.plan is not None:
        plan.save(arguments.plan)
    for path in arguments.draw:
        from ps2stream.cli.render.plan_drawing import draw_plan

        files = [path / f"{plan.partitioner}{ending}" for ending in _ENDINGS] if arguments.all else [path]
        for file in files:
            if not arguments.quiet:
                note(f"{plan.partitioner}: drawing {file}")
            draw_plan(plan, sample, figures, file)


def _print_json(
    arguments: argparse.Namespace, plan: Plan, sample: Sample, costs: Costs, figures: PlanFigures
) -> None:
    from dataclasses import asdict

    of_sample = {
        "publications": sample.n_publications,
        "subscriptions": sample.n_subscriptions,
        "live": sample.n_live,
        "churn": sample.churn,
    }
    tree = {"tree": plan.tree.as_dict() if plan.tree else None} if arguments.tree else {}
    print_json({**figures.as_dict(), "sample": of_sample, "costs": asdict(costs), **tree})


def _print_text(arguments: argparse.Namespace, done: list[tuple[Plan, PlanFigures]]) -> None:
    from ps2stream.cli.render.plan_table import LEGEND, print_table

    print_table([figures for _, figures in done])
    if not arguments.quiet:
        note(LEGEND)
    if arguments.tree:
        for plan, _ in done:
            print(f"\n{plan.partitioner}: " + (f"\n{plan.tree}" if plan.tree else "no tree"))
