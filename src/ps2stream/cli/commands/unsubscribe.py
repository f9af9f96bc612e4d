"""``ps2stream unsubscribe``: end subscriptions."""

from __future__ import annotations

import argparse
from typing import Any

from ps2stream.cli import exits
from ps2stream.cli.options.arguments import unicode_text
from ps2stream.cli.options.home import add_home, home_from
from ps2stream.cli.render.output import complain, print_json, safe
from ps2stream.errors import quoted

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
    from ps2stream.deployment.live_subscriptions import live_subscriptions
    from ps2stream.deployment.single_updates import unsubscribe

    home = home_from(arguments)
    wanted = list(dict.fromkeys(arguments.ids))
    live = set(live_subscriptions(home, wanted).column("id").to_pylist())
    known = [subscription_id for subscription_id in wanted if subscription_id in live]
    for subscription_id in wanted:
        if subscription_id not in live:
            complain(f"no live subscription has the id {quoted(subscription_id)}")
    seqs = unsubscribe(home, known) if known else []
    for subscription_id, seq in zip(known, seqs, strict=True):
        if arguments.json:
            print_json({"id": subscription_id, "seq": seq})
        else:
            print(f"unsubscribed {safe(subscription_id)!r} at seq {seq}")
    return exits.DONE if len(known) == len(wanted) else exits.PARTLY
