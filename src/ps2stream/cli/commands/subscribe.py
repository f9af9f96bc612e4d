"""``ps2stream subscribe``: add or replace subscriptions."""

from __future__ import annotations

import argparse
from typing import Any

from ps2stream.cli import exit_codes
from ps2stream.cli.options.arguments import bounds, point, unicode_text
from ps2stream.cli.options.home import add_home, home_from
from ps2stream.cli.options.input_file import add_format, open_input
from ps2stream.cli.render.output import at_seq, brief, print_json, safe
from ps2stream.model.square_region import Bounds

_DESCRIPTION = """\
Add a subscription, or replace the one that has its id, from the next publication on.

EXPRESSION: keywords with AND, OR and parentheses; words next to each other mean AND, which binds
tighter than OR. Operators are upper case. Case and punctuation of keywords do not matter: #Fire is fire.
Region: a closed rectangle in WGS84 degrees; MIN_LON > MAX_LON crosses the antimeridian.

Many at once, with --file: each line is a JSON text of its own:
  {"id": "q1", "expression": "fire OR smoke", "region": [11.3, 48.0, 11.8, 48.3]}
  {"type": "Feature", "id": "q1", "properties": {"expression": "fire OR smoke"}, "geometry": ...}
where the geometry is a Polygon that is a rectangle along meridians and parallels, or null beside a "bbox";
or a FeatureCollection of such. A bad record is told of on stderr, and the others go on: exit code 1.
"""

_EPILOG = """\
examples:
  ps2stream subscribe fires 'fire AND (smoke OR flames)' --region 11.3,48.0,11.8,48.3
  ps2stream subscribe surf 'swell OR surf' --around -17.8,178.0 --km 200
  ps2stream subscribe --file areas.geojson --json
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "subscribe",
        help="add or replace subscriptions",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("id", metavar="ID", type=unicode_text, nargs="?", help="name of the subscription")
    parser.add_argument(
        "expression", metavar="EXPRESSION", type=unicode_text, nargs="?", help="what a text must hold"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--region", metavar="MIN_LON,MIN_LAT,MAX_LON,MAX_LAT", type=bounds, help="in degrees")
    where.add_argument("--around", metavar="LAT,LON", type=point, help="the centre of a square; needs --km")
    where.add_argument("--file", metavar="FILE", help="read many; - is stdin")
    parser.add_argument("--km", metavar="SIDE", type=float, help="side of the square in kilometres")
    add_format(parser)
    add_home(parser)
    parser.add_argument("--json", action="store_true", help='print a JSON line for each: {"id", "seq"}')
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    _check_usage(arguments)
    if arguments.file is None:
        return _subscribe(arguments)
    with open_input(arguments.file, arguments.format) as source:
        from ps2stream.cli.record_input import take_document, take_lines
        from ps2stream.deployment.intake import subscriptions

        home = home_from(arguments)
        take = take_document if source.whole else take_lines
        return take(subscriptions(home.stop_words()), home, source.descriptor, as_json=arguments.json)


def _check_usage(arguments: argparse.Namespace) -> None:
    error = arguments.parser.error
    if arguments.file is not None:
        if arguments.id is not None:
            error("--file and ID EXPRESSION exclude each other")
    elif arguments.expression is None:
        error("ID and EXPRESSION are needed, or --file")
    elif arguments.region is None and arguments.around is None:
        error("one of --region, --around and --file is needed")
    if (arguments.around is None) != (arguments.km is None):
        error("--around and --km need each other")


def _subscribe(arguments: argparse.Namespace) -> int:
    from ps2stream.deployment.deployment import Deployment
    from ps2stream.model.space import Region
    from ps2stream.model.subscriptions import Subscription

    region = Region(*(arguments.region or _square(arguments)))
    subscription = Subscription(arguments.id, arguments.expression, region)
    seq = Deployment.of(home_from(arguments)).subscribe(subscription).seqs[0]
    if arguments.json:
        print_json({"id": arguments.id, "seq": seq})
    else:
        print(f"subscribed {brief(safe(arguments.id))!r}{at_seq(seq)}")
    return exit_codes.DONE


def _square(arguments: argparse.Namespace) -> Bounds:
    from ps2stream.model.square_region import square_region

    lat, lon = arguments.around
    return square_region(lat, lon, arguments.km)
