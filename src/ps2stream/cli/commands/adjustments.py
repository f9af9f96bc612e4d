"""``ps2stream adjustments``: the audit log of load adjustment."""

from __future__ import annotations

import argparse
from typing import Any

from ps2stream.cli import exit_codes
from ps2stream.cli.options.arguments import natural
from ps2stream.cli.options.home import add_home, existing_home
from ps2stream.cli.render.output import note, print_json

_DESCRIPTION = """\
Show what load adjustment did in a job, and why, oldest first.

There are three kinds. local: cells, or some of the terms of a cell, went from one worker to another.
switch: a new plan routes the subscriptions that begin afterwards. unite: what was left to the older
plan moved, and that plan is gone.

Each has its reason; the balance, L_max/L_min, as it was counted before, as it was expected to become,
and as it was counted over the window after it; what moved from where to where; and what it cost: the
time to decide, the time that the stream stood still, the time until the last worker was ready, and
how many publications were in the batch that had to wait.
"""

_EPILOG = """\
examples:
  ps2stream adjustments
  ps2stream adjustments --limit 1               the newest one
  ps2stream adjustments --json | jq '[.at, .kind, .n_bytes, .pause_s]'
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "adjustments",
        help="show what load adjustment did, and why",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--limit", metavar="N", type=natural, help="only the newest N")
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from ps2stream.cli.render.adjustment_text import object_of, text_of
    from ps2stream.deployment.deployment import Deployment

    records = Deployment.of(existing_home(arguments)).adjustments()
    if not records:
        note("ps2stream: no adjustment was made yet")
    for number, record in enumerate(records[-arguments.limit :] if arguments.limit else records):
        if arguments.json:
            print_json(object_of(record))
        else:
            print(("\n" if number else "") + text_of(record))
    return exit_codes.DONE
