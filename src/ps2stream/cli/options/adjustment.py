"""When and how load is adjusted, as options of the commands that run a stream."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ps2stream.balance.settings import AdjustmentSettings

#: The names of ``balance.settings.SCOPES`` and ``balance.selection.SELECTORS``: a help text has no time to
#: import them.
SCOPE_NAMES = ("both", "local", "global", "off")
SELECTOR_NAMES = ("dp", "gr", "si", "ra")

_DESCRIPTION = """\
Load moves while the stream runs. Local adjustment moves cells from the busiest worker to
the least busy one; global adjustment makes a new plan. Loads are those of a window of the
newest publications; see 'ps2stream status' and 'ps2stream adjustments'."""

_FIELDS = {
    "adjust": "scope",
    "selector": "selector",
    "sigma": "sigma",
    "balance_target": "target",
    "window": "window",
    "hot_cells": "hot_cells",
    "check_every": "check_every",
    "margin": "margin",
    "drain_share": "drain_share",
    "drain_limit": "drain_limit",
}


def add_adjustment_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options of load adjustment; their defaults are those of ``AdjustmentSettings``."""
    group = parser.add_argument_group("load adjustment", _DESCRIPTION)
    group.add_argument(
        "--adjust", metavar="SCOPE", help=f"what is done: {', '.join(SCOPE_NAMES)} (default: both)"
    )
    _add_local(group)
    _add_global(group)


def add_margin(group: argparse._ArgumentGroup) -> None:
    """Add the option that says what a new plan has to gain."""
    group.add_argument(
        "--margin",
        metavar="SHARE",
        type=float,
        help="a new plan is taken if it lowers the load of the busiest worker by more than this share "
        "(default: 0.2)",
    )


def _add_local(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--selector",
        metavar="NAME",
        help="how the cells to move are chosen: dp (fewest bytes, slow), gr (greedy, nearly as few), "
        "si (largest first), ra (at random) (default: gr)",
    )
    group.add_argument(
        "--sigma",
        metavar="RATIO",
        type=float,
        help="adjust when the busiest worker has more than this many times the load of the least busy one, "
        "in both halves of the window (default: 1.5)",
    )
    group.add_argument(
        "--balance-target",
        metavar="RATIO",
        type=float,
        help="move until they are within this; the distance to sigma keeps load from going to and fro "
        "(default: 1.1)",
    )
    group.add_argument(
        "--window",
        metavar="N",
        type=int,
        help="publications that loads are counted over; after a change nothing is decided for as long "
        "(default: 200000)",
    )
    group.add_argument(
        "--hot-cells",
        metavar="N",
        type=int,
        help="this many of a worker's busiest cells are looked at for a division by terms (default: 8)",
    )


def _add_global(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--check-every",
        metavar="N",
        type=int,
        help="publications from one look for a better plan to the next (default: 5000000)",
    )
    add_margin(group)
    group.add_argument(
        "--drain-share",
        metavar="SHARE",
        type=float,
        help="the older of two plans goes, and what is left to it moves, when no more than this share of "
        "subscriptions is (default: 0.05)",
    )
    group.add_argument(
        "--drain-limit",
        metavar="N",
        type=int,
        help="it goes after at most this many publications (default: 10000000)",
    )


def adjustment_from(
    arguments: argparse.Namespace, default: AdjustmentSettings | None = None
) -> AdjustmentSettings:
    """Build the settings; what was not given is as in ``default``."""
    from dataclasses import replace

    from ps2stream.balance.settings import AdjustmentSettings

    given = {
        field: getattr(arguments, option)
        for option, field in _FIELDS.items()
        if getattr(arguments, option, None) is not None
    }
    return replace(default or AdjustmentSettings(), **given)
