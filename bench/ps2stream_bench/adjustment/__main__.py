"""The command line of the benchmarks of load adjustment; each command has a module of its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from types import ModuleType

from ps2stream_bench.adjustment import drift, selectors
from ps2stream_bench.micro.host import host_facts
from ps2stream_bench.results import Row, check_path, write_rows

_COMMANDS: dict[str, ModuleType] = {"drift": drift, "selectors": selectors}


class _Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Keep the lines of descriptions, and add the defaults of options."""


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser("python -m ps2stream_bench.adjustment", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        command = commands.add_parser(
            name, help=module.SUMMARY, description=module.ABOUT, formatter_class=_Help
        )
        module.add_options(command)
    arguments = parser.parse_args(argv)
    if arguments.out:
        check_path(arguments.out)
    return arguments


def run(arguments: argparse.Namespace) -> list[Row]:
    """Run a command; return its rows with what is needed to understand them later."""
    settings = {
        f"argument_{name}": value
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


if __name__ == "__main__":
    main()
