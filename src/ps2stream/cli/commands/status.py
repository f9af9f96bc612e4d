"""``ps2stream status``: how the load of a job is spread, as the job counts it."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ps2stream.cli import exits
from ps2stream.cli.options.arguments import count
from ps2stream.cli.options.home import add_home, home_from
from ps2stream.cli.render.output import print_json
from ps2stream.deployment.home import state_of

_DESCRIPTION = """\
Show how the load is spread over the workers of a job, over a window of the newest publications.

First: whether the job runs, how old the figures are (it leaves new ones every few seconds while events
come), by which plans subscriptions are routed, and the imbalance, L_max/L_min, beside the sigma
above which load is adjusted. Then each worker's share of the load and its busy seconds. Then
the busiest cells of each: publications, subscriptions on average, candidates and matches of the
window, the bytes that would move with the cell, and its region as MIN_LON,MIN_LAT,MAX_LON,MAX_LAT.

A job that does not adjust its load (--adjust off, or one worker) counts nothing.
"""

_EPILOG = """\
examples:
  ps2stream status
  ps2stream status --cells 5
  ps2stream status --json | jq '.workers[] | [.worker, .load, .busy_s]'
"""

_NOTHING_YET = (
    "no loads are known: no batch is done yet, or load is not adjusted (--adjust off, or one worker)"
)


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "status",
        help="show how the load of a job is spread",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--cells",
        metavar="N",
        type=count,
        default=3,
        help="show N cells of each worker, of the 5 that are known (default: %(default)s)",
    )
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    state = state_of(home_from(arguments))
    status = state.read_status()
    if arguments.json:
        _print_json(state.is_running(), status, arguments.cells)
    else:
        _print_text(state.is_running(), status, arguments.cells)
    return exits.DONE


def _print_json(is_running: bool, status: dict[str, Any] | None, n_cells: int) -> None:
    from ps2stream.cli.render.load_figures import LoadFigures

    shown: dict[str, Any] = {"running": is_running, "age_s": None}
    if status is not None:
        shown["age_s"] = round(max(0.0, time.time() - LoadFigures.of(status).at), 3)
        workers = [{**worker, "cells": worker["cells"][:n_cells]} for worker in status["workers"]]
        shown = {**shown, **status, "workers": workers}
    print_json(shown)


def _print_text(is_running: bool, status: dict[str, Any] | None, n_cells: int) -> None:
    from ps2stream.cli.render.load_figures import LoadFigures
    from ps2stream.cli.render.load_table import ago, print_loads

    doing = "the job runs" if is_running else "the job does not run"
    if status is None:
        print(f"{doing}; {_NOTHING_YET}")
        return
    figures = LoadFigures.of(status)
    print(f"{doing}; figures of {ago(time.time() - figures.at)}, after batch {figures.batch_id}")
    print_loads(figures, n_cells)
