"""PS2Stream: alerts by place and words, at stream scale.

Subscriptions (a Boolean keyword expression and a region) and publications (a text at a place)
stream in; every match comes out exactly once. This package offers matching in this process::

    import ps2stream as ps2

    ps2.match([
        ps2.Subscription("alarm", "fire AND (smoke OR alarm)", ps2.Region(-0.5, 51.3, 0.3, 51.7)),
        ps2.Publication("m1", "Smoke and #Fire near the station", lat=51.5, lon=-0.1),
    ])

A :class:`Deployment` is the same with a journal and a job, in a directory: subscribe and publish from here or
from the command line, and list, follow and explain what came of it. The stream on Spark is in
:mod:`ps2stream.engines.spark`; the durable journal in :mod:`ps2stream.journal`; what a match is, in
:mod:`ps2stream.testing.oracle`.

All but Spark works with numpy, numba and pyarrow alone; :mod:`ps2stream.extras` says what else there is.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ps2stream.balance.settings import AdjustmentSettings
    from ps2stream.config import Settings
    from ps2stream.deployment.deployment import Deployment
    from ps2stream.deployment.submission import Receipt
    from ps2stream.engines.inline import Outcome
    from ps2stream.errors import (
        BrokerError,
        ConfigError,
        EngineError,
        ExpressionError,
        FencedError,
        JournalError,
        MissingError,
        MissingExtraError,
        PS2StreamError,
        RegionError,
        Rejected,
        RejectedError,
        SchemaError,
        StateError,
    )
    from ps2stream.matcher import Matcher, event_table, match
    from ps2stream.model.matches import Match
    from ps2stream.model.publications import Publication
    from ps2stream.model.space import Region
    from ps2stream.model.subscriptions import Subscription, Unsubscription

__version__ = "0.1.0"

_NAMES_OF = {
    "ps2stream.balance.settings": ("AdjustmentSettings",),
    "ps2stream.config": ("Settings",),
    "ps2stream.deployment.deployment": ("Deployment",),
    "ps2stream.deployment.submission": ("Receipt",),
    "ps2stream.engines.inline": ("Outcome",),
    "ps2stream.errors": (
        "BrokerError",
        "ConfigError",
        "EngineError",
        "ExpressionError",
        "FencedError",
        "JournalError",
        "MissingError",
        "MissingExtraError",
        "PS2StreamError",
        "RegionError",
        "Rejected",
        "RejectedError",
        "SchemaError",
        "StateError",
    ),
    "ps2stream.matcher": ("Matcher", "event_table", "match"),
    "ps2stream.model.matches": ("Match",),
    "ps2stream.model.publications": ("Publication",),
    "ps2stream.model.space": ("Region",),
    "ps2stream.model.subscriptions": ("Subscription", "Unsubscription"),
}
_HOMES = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = [
    "AdjustmentSettings",
    "BrokerError",
    "ConfigError",
    "Deployment",
    "EngineError",
    "ExpressionError",
    "FencedError",
    "JournalError",
    "Match",
    "Matcher",
    "MissingError",
    "MissingExtraError",
    "Outcome",
    "PS2StreamError",
    "Publication",
    "Receipt",
    "Region",
    "RegionError",
    "Rejected",
    "RejectedError",
    "SchemaError",
    "Settings",
    "StateError",
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
