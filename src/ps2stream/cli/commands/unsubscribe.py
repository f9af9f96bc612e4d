"""``ps2stream unsubscribe``: end subscriptions."""

from __future__ import annotations

import argparse
from typing import Any

from ps2stream.cli import exit_codes
from ps2stream.cli.options.arguments import unicode_text
from ps2stream.cli.options.home import add_home, existing_home
from ps2stream.cli.render.output import at_seq, brief, complain, print_json, safe

_DESCRIPTION = """\
End subscriptions: they match no publication that comes after.

An id that no live subscription has is told of on stderr, and the others are ended: exit code 1.
"""

_EPILOG = """\
examples:
  ps2stream unsubscribe fires
  ps2stream subscriptions --json | jq -r .id | xargs -d '\\n' ps2stream unsubscribe --
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "unsubscribe",
        help="end subscriptions",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("ids", metavar="ID", type=unicode_text, nargs="+", help="subscription to end")
    add_home(parser)
    parser.add_argument("--json", action="store_true", help='print a JSON line for each: {"id", "seq"}')
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from ps2stream.deployment.deployment import Deployment

    receipt = Deployment.of(existing_home(arguments)).unsubscribe(arguments.ids, on_rejected="skip")
    for rejected in receipt.rejected:
        complain(rejected.reason)
    for subscription_id, seq in zip(receipt.ids, receipt.seqs, strict=True):
        if arguments.json:
            print_json({"id": subscription_id, "seq": seq})
        else:
            print(f"unsubscribed {brief(safe(subscription_id))!r}{at_seq(seq)}")
    return exit_codes.PARTLY if receipt.rejected else exit_codes.DONE
