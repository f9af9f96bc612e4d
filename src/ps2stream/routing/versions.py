"""Which plans route the stream now, and since when (Sec. V-B).

Mostly there is one. After a repartitioning there are two for a while: subscriptions that began before
it stay where the older plan put them, later ones go where the newer plan says, and publications are
routed by both.
"""

from __future__ import annotations

from typing import NamedTuple


class RoutingVersion(NamedTuple):
    """A plan by its number; it holds for the subscriptions that began after a seq."""

    plan: int
    after_seq: int


#: Newest first.
RoutingVersions = tuple[RoutingVersion, ...]
