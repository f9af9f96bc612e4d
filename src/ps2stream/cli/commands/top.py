"""``ps2stream top``: how a running job is doing, in place, until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ps2stream.cli import exit_codes
from ps2stream.cli.interrupts import Terminated
from ps2stream.cli.options.arguments import seconds
from ps2stream.cli.options.home import add_home, existing_home
from ps2stream.cli.render.output import print_json
from ps2stream.extras import is_installed

if TYPE_CHECKING:
    from ps2stream.deployment.deployment import Deployment

_DESCRIPTION = """\
Watch a running job, of any engine, from another terminal or host: throughput, latency from append to
delivery, lag, and every role: its host, its rate, the share of time that it is busy, its subscriptions,
the events that wait for it, the seq that it is at, its horizon, how often it was started again.

The job leaves these figures with its state every few seconds, whether events come or not; rates and
quantiles are those of the last ten seconds. A job that does not run is told of, with the age of what it
left. Prometheus gets the same figures from 'ps2stream run --metrics'.
"""

_EPILOG = """\
examples:
  ps2stream top
  ps2stream top --kafka broker:9092 --topics alerts --store s3://bucket/alerts
  ps2stream top --once
  ps2stream top --once --json | jq '.roles[] | [.role, .number, .rates.busy_seconds]'
"""

_SHORTEST_S = 0.1
_NOTHING_YET = "it has left no figures yet"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "top",
        help="watch a running job: throughput, latency, lag, every role",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--once", action="store_true", help="show the figures of now, and end")
    parser.add_argument(
        "--interval",
        metavar="S",
        type=seconds,
        help="seconds between two looks (default: as often as the job leaves figures, 2; in a store 5)",
    )
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print each look as one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from ps2stream.deployment.board_keeper import interval_s
    from ps2stream.deployment.deployment import Deployment

    deployment = Deployment.of(existing_home(arguments))
    every_s = interval_s(deployment.home) if arguments.interval is None else arguments.interval
    try:
        with _shown(arguments) as show:
            show(_look(deployment))
            while not arguments.once:
                time.sleep(max(every_s, _SHORTEST_S))
                show(_look(deployment))
    except KeyboardInterrupt as interrupt:
        # Ctrl-C is the ordinary way to end it, so it is no failure.
        if isinstance(interrupt, Terminated) or arguments.once:
            raise
    return exit_codes.DONE


def _look(deployment: Deployment) -> dict[str, Any]:
    """Return the board of now; what cannot be read is told of before anything is shown."""
    from ps2stream.cli.render.board_figures import BoardFigures

    board = deployment.board()
    if board["age_s"] is not None:
        BoardFigures.of(board)
    return board


@contextlib.contextmanager
def _shown(arguments: argparse.Namespace) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield what shows a board: as JSON, in place on a terminal, or as one text after the other."""
    if arguments.json:
        yield _print_json
    elif arguments.once or not _can_draw():
        yield lambda board: print(
            *_lines(board), "", sep="\n", end="" if arguments.once else "\n", flush=True
        )
    else:
        yield from _in_place()


def _can_draw() -> bool:
    """Say whether stdout is a terminal that lines can be drawn on again."""
    has_screen = os.environ.get("TERM", "") not in ("", "dumb")
    return sys.stdout.isatty() and has_screen and is_installed("rich")


def _in_place() -> Iterator[Callable[[dict[str, Any]], None]]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    # Drawn when there is something new and only then; what is too wide for the screen is cut, not wrapped.
    with Live(console=Console(highlight=False), auto_refresh=False, screen=True) as live:
        yield lambda board: live.update(
            Text("\n".join(_lines(board)), no_wrap=True, overflow="crop"), refresh=True
        )


def _lines(board: dict[str, Any]) -> list[str]:
    from ps2stream.cli.render.board_figures import BoardFigures
    from ps2stream.cli.render.board_text import board_lines, up_for
    from ps2stream.cli.render.load_table import ago

    doing = "the job runs" if board["running"] else "THE JOB DOES NOT RUN"
    if board["age_s"] is None:
        return [f"{doing}; {_NOTHING_YET}"]
    figures = BoardFigures.of(board)
    by = f" ({figures.engine})" if figures.engine else ""
    head = f"{doing}{by}; figures of {ago(board['age_s'])}, {up_for(figures.up_s)} after its start"
    return [head, *board_lines(figures)]


def _print_json(board: dict[str, Any]) -> None:
    age_s = board["age_s"]
    print_json({**board, "age_s": None if age_s is None else round(age_s, 3)})
    print(end="", flush=True)
