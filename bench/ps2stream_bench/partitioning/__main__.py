"""The command line of the benchmarks of partitioners; each command has a module of its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from ps2stream.partitioning import PARTITIONERS
from ps2stream_bench.micro.host import host_facts
from ps2stream_bench.partitioning import compare, predict, sensitivity, speed
from ps2stream_bench.results import Row, check_path, write_rows
from ps2stream_bench.workload import KINDS

_COMMANDS: dict[str, ModuleType] = {
    "compare": compare,
    "predict": predict,
    "speed": speed,
    "sensitivity": sensitivity,
}

_ABOUT = """\
Benchmarks of partitioners on generated streams: Q1 (frequent words, regions up to 50 km), Q2 (at least one
rare word, up to 100 km) and Q3 (one hundred regions of the map, half of them Q1 and half Q2).
"""


class _Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Keep the lines of descriptions, and add the defaults of options."""


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        "python -m ps2stream_bench.partitioning", description=_ABOUT, formatter_class=_Help
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        command = commands.add_parser(
            name, help=module.SUMMARY, description=module.ABOUT, formatter_class=_Help
        )
        module.add_options(command)
        _add_options(command)
    arguments = parser.parse_args(argv)
    if arguments.out:
        check_path(arguments.out)
    return arguments


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add what all commands have."""
    add, names = parser.add_argument, list(PARTITIONERS)
    add("--partitioners", nargs="+", choices=names, default=names, metavar="NAME", help="to measure")
    add("--workloads", nargs="+", choices=KINDS, default=list(KINDS), help="to measure them on")
    add("--corpus", type=Path, metavar="PARQUET", help="lat, lon and text; without it a synthetic one")
    add("--corpus-size", type=int, default=200_000, metavar="N", help="texts of the synthetic corpus")
    add("--seed", type=int, default=1, metavar="N", help="another one makes other events")
    add("--out", type=Path, metavar="FILE", help="write the raw rows to this .parquet or .jsonl")


def run(arguments: argparse.Namespace) -> list[Row]:
    """Run a command; return its rows with what is needed to understand them later."""
    settings = {
        f"argument_{name}": " ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in vars(arguments).items()
        if name not in ("command", "corpus", "out")
    }
    source = "file" if arguments.corpus else "synthetic"
    fixed = {**host_facts(), "command": arguments.command, "corpus": source, **settings}
    return [{**fixed, **row} for row in _COMMANDS[arguments.command].run(arguments)]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, keep the rows, print the table."""
    arguments = parse(argv)
    rows = run(arguments)
    if arguments.out:
        write_rows(rows, arguments.out)
    print(_COMMANDS[arguments.command].report(rows))
    if arguments.command == "compare":
        compare.check(rows)


if __name__ == "__main__":
    main()
