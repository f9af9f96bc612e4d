"""The command line: knows the commands' names, and imports only the one that was chosen.

``ps2stream --help`` is instant because nothing here imports Arrow, numba or Spark; a command does so when it
runs, not when it describes itself.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ps2stream.cli import exit_codes
from ps2stream.cli.interrupts import ending_of, exit_code_of, raised_interrupts
from ps2stream.cli.options.arguments import glued
from ps2stream.cli.options.usage import UsageError
from ps2stream.cli.render.output import brief, complain, safe
from ps2stream.errors import PS2StreamError

#: Each command is the module of its name in ``cli.commands``, with ``add_parser`` and ``run``.
COMMANDS = {
    "replay": "run an event log through the whole pipeline, as fast as it goes",
    "demo": "watch a synthetic stream being matched",
    "partition": "divide the load of a sample between workers, compare and draw plans",
    "run": "match the events of a journal until stopped",
    "publish": "add publications to the journal",
    "subscribe": "add or replace subscriptions",
    "unsubscribe": "end subscriptions",
    "subscriptions": "list the live subscriptions",
    "matches": "show what was delivered, and follow what comes",
    "status": "show how the load of a job is spread",
    "top": "watch a running job: throughput, latency, lag, every role",
    "adjustments": "show what load adjustment did, and why",
    "repartition": "consider a new plan for a running job, or say what it would gain",
    "explain": "say why a publication does or does not match a subscription",
}

_DESCRIPTION = """\
Alerts by place and words, at stream scale: publications (a point and a text) meet subscriptions
(a region and an expression of keywords), each match delivered exactly once.

A deployment lives in one directory, its home (--home DIR, or PS2STREAM_HOME, or ./ps2stream-data):
publish, subscribe and unsubscribe add to its journal, run matches, matches and explain show what came of it,
status and adjustments how the load is spread and moved, top how a running job is doing.
"""

_EPILOG = f"""\
examples:
  ps2stream demo --seconds 30
  ps2stream subscribe fires 'fire AND (smoke OR flames)' --region 11.3,48.0,11.8,48.3
  echo '{{"id": "p1", "lat": 48.1, "lon": 11.5, "text": "Fire and smoke!"}}' | ps2stream publish
  ps2stream run --until-idle
  ps2stream matches --text
  ps2stream explain --publication p1 --subscription fires

{exit_codes.EXIT_CODES}
'ps2stream COMMAND --help' tells more about a command.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; no error that a user can act on shows a traceback."""
    _open_missing_streams()
    _print_anything()
    _print_warnings()
    try:
        with raised_interrupts():
            return _run(glued(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt as interrupt:
        code = exit_code_of(interrupt)
        complain(ending_of(code))
        return code
    except BrokenPipeError:
        _discard_output()
        return exit_codes.BROKEN_PIPE
    except OSError as error:
        # Without the number, which says nothing to people.
        words = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        complain(words)
        return exit_codes.FAILED
    except PS2StreamError as error:
        complain(error)
        return exit_codes.FAILED


def _run(words: list[str]) -> int:
    try:
        arguments = _parser(words).parse_args(words)
        try:
            code: int = arguments.run(arguments)
        except UsageError as error:
            arguments.parser.error(str(error))
    except SystemExit as stop:  # argparse: help and version are 0, usage errors 2
        code = stop.code if isinstance(stop.code, int) else exit_codes.USAGE
    # Here, where a reader that has gone can still be reported, not at the interpreter's end.
    sys.stdout.flush()
    return code


class _Parser(argparse.ArgumentParser):
    """Complain in a line that can be read, whatever was given; commands inherit it."""

    def error(self, message: str) -> NoReturn:
        super().error(brief(safe(message)))


def _parser(words: list[str]) -> argparse.ArgumentParser:
    parser = _Parser(
        prog="ps2stream",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and end")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    chosen = next((word for word in words if not word.startswith("-")), None)
    for name, summary in COMMANDS.items():
        if name == chosen:
            importlib.import_module(f"ps2stream.cli.commands.{name}").add_parser(subparsers)
            subparsers.choices[name].set_defaults(parser=subparsers.choices[name])
        else:
            subparsers.add_parser(name, help=summary)
    return parser


class _Version(argparse.Action):
    """Look the version up only when asked: importlib.metadata takes longer than the rest of the help."""

    def __call__(self, parser: argparse.ArgumentParser, *unused: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"ps2stream {version('ps2stream')}")
        except PackageNotFoundError:
            print("ps2stream, not installed as a package")
        parser.exit()


def _open_missing_streams() -> None:
    """Let what was closed before we started be empty; else the next file opened would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _print_anything() -> None:
    """Let no character that the terminal's encoding lacks end a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _print_warnings() -> None:
    """Show what the library warns of as one line each, like errors."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    logging.getLogger("ps2stream").handlers = [handler]
    # Says with a traceback what we say in a line.
    logging.getLogger("py4j").handlers = [logging.NullHandler()]
    logging.getLogger("py4j").propagate = False


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"ps2stream: {brief(safe(record.getMessage()))}"


def _discard_output() -> None:
    """Send what is still buffered nowhere; the interpreter would complain about it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
