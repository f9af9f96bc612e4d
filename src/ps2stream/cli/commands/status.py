"""``ps2stream status``: how the load of a job is spread, as the job counts it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ps2stream.cli import exit_codes
from ps2stream.cli.options.arguments import count
from ps2stream.cli.options.home import add_home, existing_home
from ps2stream.cli.render.output import print_json

if TYPE_CHECKING:
    from ps2stream.cli.render.load_figures import LoadFigures

_DESCRIPTION = """\
Show how the load is spread over the workers of a job, over a window of the newest publications.

First: whether the job runs, how old the figures are (it leaves new ones every few seconds while events
come), by which plans subscriptions are routed, and the imbalance, L_max/L_min, beside the sigma
above which load is adjusted. Then each worker's share of the load and its busy seconds. Then
the busiest cells of each: publications, subscriptions on average, candidates and matches of the
window, the bytes that would move with the cell, and its region as MIN_LON,MIN_LAT,MAX_LON,MAX_LAT.

A job that does not adjust its load (--adjust off, or one worker) counts nothing.

A job whose state is in a store runs if it has renewed its lease within 20 s, as far as the clock of its
host and that of this one agree (lease_age_s).
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
    from ps2stream.cli.render.load_figures import LoadFigures
    from ps2stream.deployment.deployment import Deployment

    status = Deployment.of(existing_home(arguments)).status()
    figures = None if status["age_s"] is None else LoadFigures.of(status)
    if arguments.json:
        _print_json(status, arguments.cells)
    else:
        _print_text(status, figures, arguments.cells)
    return exit_codes.DONE


def _print_json(status: dict[str, Any], n_cells: int) -> None:
    if status.get("lease_age_s") is not None:
        status = {**status, "lease_age_s": round(status["lease_age_s"], 3)}
    if status["age_s"] is not None:
        workers = [{**worker, "cells": worker["cells"][:n_cells]} for worker in status["workers"]]
        status = {**status, "age_s": round(status["age_s"], 3), "workers": workers}
    print_json(status)


def _print_text(status: dict[str, Any], figures: LoadFigures | None, n_cells: int) -> None:
    from ps2stream.cli.render.load_table import ago, print_loads

    doing = "the job runs" if status["running"] else "the job does not run"
    if status.get("lease_age_s") is not None:
        doing += f" (by its clock, it renewed its lease {ago(status['lease_age_s'])})"
    if figures is None:
        print(f"{doing}; {_NOTHING_YET}")
        return
    position = status.get("position")
    where = f"after batch {figures.batch_id}" if position is None else f"at position {position}"
    print(f"{doing}; figures of {ago(status['age_s'])}, {where}")
    print_loads(figures, n_cells)
