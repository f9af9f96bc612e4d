"""PS2Stream: alerts by place and words, at stream scale.

Subscriptions (a Boolean keyword expression and a region) and publications (a text at a place)
stream in; every match comes out exactly once. This package offers matching in this process::

    import ps2stream as ps2

    ps2.match([
        ps2.Subscription("alarm", "fire AND (smoke OR alarm)", ps2.Region(-0.5, 51.3, 0.3, 51.7)),
        ps2.Publication("m1", "Smoke and #Fire near the station", lat=51.5, lon=-0.1),
    ])

The same as a stream on Spark is in :mod:`ps2stream.engines.spark`; the durable journal is in
:mod:`ps2stream.journal`; what a match is, in :mod:`ps2stream.testing.oracle`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ps2stream.config import Settings
    from ps2stream.matcher import Matcher, event_table, match
    from ps2stream.model.matches import Match
    from ps2stream.model.publications import Publication
    from ps2stream.model.space import Region
    from ps2stream.model.subscriptions import Subscription, Unsubscription

__version__ = "0.1.0"

_HOMES = {
    "Settings": "ps2stream.config",
    "Matcher": "ps2stream.matcher",
    "event_table": "ps2stream.matcher",
    "match": "ps2stream.matcher",
    "Match": "ps2stream.model.matches",
    "Publication": "ps2stream.model.publications",
    "Region": "ps2stream.model.space",
    "Subscription": "ps2stream.model.subscriptions",
    "Unsubscription": "ps2stream.model.subscriptions",
}

__all__ = [
    "Match",
    "Matcher",
    "Publication",
    "Region",
    "Settings",
    "Subscription",
    "Unsubscription",
    "__version__",
    "event_table",
    "match",
]


def __getattr__(name: str) -> Any:
    """Import on first use: `ps2stream --help` should not wait for numba and Arrow."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ps2stream' has no attribute {name!r}")
