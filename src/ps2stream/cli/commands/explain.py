"""``ps2stream explain``: why a publication does or does not match a subscription."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ps2stream.cli import exit_codes
from ps2stream.cli.options.arguments import bounds, point, unicode_text
from ps2stream.cli.options.home import add_home, home_from
from ps2stream.cli.render.output import print_json

if TYPE_CHECKING:
    from ps2stream.deployment.publication_lookup import KnownPublication
    from ps2stream.deployment.subscription_history import Version

_DESCRIPTION = """\
Say why a publication does or does not match a subscription: the terms of the text, each clause of the
expression with the terms that are missing, the region and by how much it is missed, the order of events,
and how the plan of the deployment routes it (cell, posting terms, worker).

Either side is given as it is (--text and --at; --expression and --region) or looked up in the
deployment by its id. Of a publication id that was used again the newest one is meant; of a subscription, the
version that the publication met. Exit code 0: it matches; 1: it does not.
"""

_EPILOG = """\
examples:
  ps2stream explain --publication p1 --subscription fires
  ps2stream explain --text 'Fire at sea' --at 48.1,11.5 --subscription fires
  ps2stream explain --text 'Fire at sea' --at 48.1,11.5 --expression 'fire OR smoke' --region 11,48,12,49
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "explain",
        help="say why a publication does or does not match a subscription",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    published = parser.add_argument_group("publication")
    published.add_argument("--publication", metavar="ID", type=unicode_text, help="look it up in the journal")
    published.add_argument("--text", type=unicode_text, help="its text")
    published.add_argument("--at", metavar="LAT,LON", type=point, help="its point, in degrees")
    subscribed = parser.add_argument_group("subscription")
    subscribed.add_argument(
        "--subscription", metavar="ID", type=unicode_text, help="look it up in the deployment"
    )
    subscribed.add_argument("--expression", type=unicode_text, help="what it asks of a text")
    subscribed.add_argument(
        "--region", metavar="MIN_LON,MIN_LAT,MAX_LON,MAX_LAT", type=bounds, help="its region, in degrees"
    )
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    _check_usage(arguments)
    from ps2stream.cli.render.explanation_text import object_of, text_of
    from ps2stream.deployment.deployment import Deployment

    deployment = Deployment.of(home_from(arguments))
    explanation = deployment.explain(_publication(arguments), _subscription(arguments))
    if arguments.json:
        print_json(object_of(explanation))
    else:
        print(text_of(explanation))
    return exit_codes.DONE if explanation.matches else exit_codes.PARTLY


def _check_usage(arguments: argparse.Namespace) -> None:
    sides = (("publication", "text", "at"), ("subscription", "expression", "region"))
    for by_id, *given in sides:
        n_given = sum(getattr(arguments, name) is not None for name in given)
        named = getattr(arguments, by_id) is not None
        if (named and n_given) or (not named and n_given < 2):
            arguments.parser.error(f"either --{by_id} is needed, or --{given[0]} and --{given[1]}")


def _publication(arguments: argparse.Namespace) -> str | KnownPublication:
    from ps2stream.deployment.publication_lookup import KnownPublication
    from ps2stream.errors import RegionError
    from ps2stream.model.space import check_point

    if arguments.publication is not None:
        return str(arguments.publication)
    lat, lon = arguments.at
    if reason := check_point(lon, lat):
        raise RegionError(reason)
    return KnownPublication(lat, lon, arguments.text)


def _subscription(arguments: argparse.Namespace) -> str | Version:
    from ps2stream.deployment.subscription_history import Version
    from ps2stream.model.space import Region

    if arguments.subscription is not None:
        return str(arguments.subscription)
    return Version(arguments.expression, Region(*arguments.region))
