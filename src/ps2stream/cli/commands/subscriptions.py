"""``ps2stream subscriptions``: list the live subscriptions."""

from __future__ import annotations

import argparse
from typing import Any

from ps2stream.cli import exit_codes
from ps2stream.cli.options.arguments import point, unicode_text
from ps2stream.cli.options.home import add_home, existing_home
from ps2stream.cli.render.output import Columns, degrees, print_json

_DESCRIPTION = """\
List the subscriptions that the next publication would meet, oldest first: what the job has decided
and what was added to the journal since.

Columns: id; since, the seq from which it counts; region, as MIN_LON,MIN_LAT,MAX_LON,MAX_LAT; expression.
With --json a line is {"id", "since", "region": [...], "expression"}. Long ids and expressions are
shortened, but not with --json.
"""

_EPILOG = """\
examples:
  ps2stream subscriptions
  ps2stream subscriptions --at 48.14,11.57
  ps2stream subscriptions --json | jq -r .expression
"""

_ROWS_AT_ONCE = 1_000


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "subscriptions",
        help="list the live subscriptions",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--id", metavar="ID", type=unicode_text, action="append", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--at", metavar="LAT,LON", type=point, help="only those whose region holds this point"
    )
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from ps2stream.deployment.deployment import Deployment

    table = Deployment.of(existing_home(arguments)).subscriptions(arguments.id, at=arguments.at)
    columns = Columns("id", "since", "region", "expression")
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        lines = []
        for row in batch.to_pylist():
            region = [row[name] for name in ("min_lon", "min_lat", "max_lon", "max_lat")]
            if arguments.json:
                since = {"id": row["id"], "since": row["seq"]}
                print_json({**since, "region": region, "expression": row["expression"]})
            else:
                corners = ",".join(map(degrees, region))
                lines.append((row["id"], row["seq"], corners, row["expression"]))
        columns.write(lines)
    return exit_codes.DONE
