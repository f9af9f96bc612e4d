"""``ps2stream publish``: publications from JSON into the journal."""

from __future__ import annotations

import argparse
from typing import Any

from ps2stream.cli.options.home import add_home, home_from
from ps2stream.cli.options.input_file import STDIN, add_format, open_input

_DESCRIPTION = """\
Add publications to the journal of a deployment; a running job matches them.

Each line is a JSON text of its own:
  {"id": "p1", "lat": 48.14, "lon": 11.57, "text": "Smoke over the station"}
  {"type": "Feature", "id": 7, "geometry": {"type": "Point", "coordinates": [11.57, 48.14]},
   "properties": {"text": "..."}}                                (on one line; [lon, lat])
  {"type": "FeatureCollection", "features": [...]}               stands for its features
lat in [-90, 90] and lon in [-180, 180] are WGS84 degrees. Without an id, or properties.id, one
is generated. Other fields are ignored, blank lines too.

Publications are on disk when they are acknowledged (--json), at the latest 0.2 s after they came. A record
that is not valid is told of on stderr with its line, and the others go on: exit code 1.
"""

_EPILOG = """\
examples:
  echo '{"lat": 48.14, "lon": 11.57, "text": "Smoke!"}' | ps2stream publish --json
  ps2stream publish --file quakes.geojson
  ps2stream publish --file later.jsonl --kafka broker:9092 --after 786432
  tail -f sensors.jsonl | ps2stream publish --home /srv/alerts
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "publish",
        help="add publications to the journal",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--file", metavar="FILE", default=STDIN, help="input; - is stdin (default: %(default)s)"
    )
    add_format(parser)
    add_home(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help='print a JSON line for each: {"line", "id", "seq"}, with "generated": true where the id is, '
        'or {"line", "rejected"}',
    )
    group = parser.add_argument_group("where in the order, for 'ps2stream run --engine realtime'")
    demands = group.add_mutually_exclusive_group()
    demands.add_argument(
        "--after", metavar="SEQ", type=int, help="match them after the update of this seq is seen"
    )
    demands.add_argument("--as-of", metavar="SEQ", type=int, help="match them as of the update of this seq")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    with open_input(arguments.file, arguments.format) as source:
        from ps2stream.cli.record_input import take_document, take_lines
        from ps2stream.deployment.deployment_events import Demands
        from ps2stream.deployment.intake import publications

        take = take_document if source.whole else take_lines
        demands = Demands(arguments.after, arguments.as_of)
        home = home_from(arguments)
        return take(publications(), home, source.descriptor, as_json=arguments.json, demands=demands)
