"""``ps2stream matches``: what was delivered, and what comes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ps2stream.cli import exit_codes
from ps2stream.cli.interrupts import Terminated
from ps2stream.cli.options.arguments import natural, seq, unicode_text
from ps2stream.cli.options.home import add_home, existing_home
from ps2stream.cli.render.output import Columns, note, print_json
from ps2stream.deployment.home import Home

if TYPE_CHECKING:
    from ps2stream.deployment.deployment_events import DeploymentEvents
    from ps2stream.deployment.match_reader import Matches, Wanted

_DESCRIPTION = """\
Show the matches that the job of a deployment has delivered, oldest first, each once.

Columns: subscription_id, subscription_seq (the seq of its subscribe: its version), publication_id,
publication_seq, and with --text the text, which the journal has until it is pruned. With --json a
line is an object of these. Long ids and texts are shortened, but not with --json.
"""

_EPILOG = """\
examples:
  ps2stream matches --subscription fires --text
  ps2stream matches --follow --new --json
  ps2stream matches --follow --limit 1        wait for the first one
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "matches",
        help="show what was delivered, and follow what comes",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--subscription", metavar="ID", type=unicode_text, help="only those of this subscription"
    )
    parser.add_argument("--since", metavar="SEQ", type=seq, help="only publications from this seq on")
    parser.add_argument("--limit", metavar="N", type=natural, help="end after N matches")
    parser.add_argument("--text", action="store_true", help="show the texts, too")
    parser.add_argument(
        "--follow", action="store_true", help="go on with what comes, until Ctrl-C: exit code 0"
    )
    parser.add_argument(
        "--new", action="store_true", help="with --follow: leave out what was delivered before"
    )
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.new and not arguments.follow:
        arguments.parser.error("--new needs --follow")
    from ps2stream.deployment.match_reader import Wanted

    home = existing_home(arguments)
    reader = home.matches()
    if not reader.has_any():
        note(f"ps2stream: no matches yet in {home.out if home.topics is None else home}")
    if arguments.new:
        reader.skip()
    texts = _Texts(home) if arguments.text else None
    try:
        _show(reader, Wanted(arguments.subscription, arguments.since), texts, arguments)
    except KeyboardInterrupt as interrupt:
        # Ctrl-C is the ordinary way to end it, so it is no failure.
        if isinstance(interrupt, Terminated) or not arguments.follow:
            raise
    return exit_codes.DONE


def _show(reader: Matches, wanted: Wanted, texts: _Texts | None, arguments: argparse.Namespace) -> None:
    left = arguments.limit
    names = ["subscription_id", "subscription_seq", "publication_id", "publication_seq"]
    columns = Columns(*names, *(["text"] if texts else []))
    for rows in _polled(reader, wanted, follow=arguments.follow):
        shown = rows if left is None else rows[:left]
        if texts:
            shown = [{**row, "text": texts.of(row)} for row in shown]
        if arguments.json:
            for row in shown:
                print_json(row)
        else:
            columns.write([_cells(row) for row in shown])
        # One who follows through a pipe wants to see them now.
        print(end="", flush=True)
        if left is not None:
            left -= len(shown)
            if left <= 0:
                return


def _polled(reader: Matches, wanted: Wanted, *, follow: bool) -> Iterator[list[dict[str, Any]]]:
    for batch in reader.follow(wanted) if follow else reader.read(wanted):
        yield batch.to_pylist()


def _cells(row: dict[str, Any]) -> list[Any]:
    return ["(no longer in the journal)" if value is None else value for value in row.values()]


class _Texts:
    """Look texts up in the journal of a home, from the first one that is asked for."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._feed: DeploymentEvents | None = None

    def of(self, match: dict[str, Any]) -> str | None:
        if self._feed is None:
            # Left open to the end of the process, which is the end of this command.
            self._feed = self._home.events()
        return self._feed.text(match["publication_id"], match["publication_seq"])
