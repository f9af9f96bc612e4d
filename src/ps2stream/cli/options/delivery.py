"""``--delivery``, ``--match-format``: how often a match may come, and how matches look on Kafka."""

from __future__ import annotations

import argparse

from ps2stream.cli.options.engine import REALTIME
from ps2stream.cli.options.kafka import KAFKA
from ps2stream.cli.options.usage import UsageError
from ps2stream.deployment.home import Home

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly-once", "at-least-once"
_ARROW, _JSON = "arrow", "json"


def add_delivery(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--match-format",
        choices=(_ARROW, _JSON),
        default=_ARROW,
        help="matches on Kafka: packets of many, or an object each (default: %(default)s)",
    )
    parser.add_argument(
        "--delivery",
        choices=(EXACTLY_ONCE, AT_LEAST_ONCE),
        default=EXACTLY_ONCE,
        help="of --engine realtime: at-least-once does without transactions, and is some milliseconds "
        "faster; after a failure matches of the last moments come again (default: %(default)s)",
    )


def check_delivery(arguments: argparse.Namespace, home: Home) -> None:
    """Refuse a choice where there is none."""
    if arguments.delivery != EXACTLY_ONCE and arguments.engine != REALTIME:
        raise UsageError(
            f"--delivery {arguments.delivery} is for --engine realtime; "
            f"--engine {arguments.engine} delivers every match exactly once"
        )
    if arguments.match_format != _ARROW and home.topics is None:
        raise UsageError(
            f"--match-format {arguments.match_format} is for matches on Kafka: --kafka HOST:PORT (or {KAFKA})"
        )
