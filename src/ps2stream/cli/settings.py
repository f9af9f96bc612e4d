"""The settings that several commands share, as options."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ps2stream.config import Settings


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options; their defaults are those of ``config.Settings``."""
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--workers", metavar="M", type=int, help="workers that share the subscriptions (default: 4)"
    )
    group.add_argument(
        "--dispatchers", metavar="D", type=int, help="dispatchers that route publications (default: 2)"
    )
    group.add_argument("--partitioner", metavar="NAME", help="how the load is divided: grid (default: grid)")
    group.add_argument(
        "--batch-events", metavar="N", type=int, help="the most events of a batch (default: 100000)"
    )
    group.add_argument(
        "--sample-events", metavar="N", type=int, help="events that the plan is made from (default: 50000)"
    )
    group.add_argument(
        "--stop-words", metavar="FILE", type=Path, help="words to ignore in texts and expressions, one a line"
    )


def settings_from(arguments: argparse.Namespace) -> Settings:
    """Build the settings; what was not given keeps its default."""
    from ps2stream.config import Settings
    from ps2stream.errors import ConfigError

    names = {
        "workers": "n_workers",
        "dispatchers": "n_dispatchers",
        "partitioner": "partitioner",
        "batch_events": "batch_events",
        "sample_events": "sample_events",
    }
    given = {
        names[name]: value for name, value in vars(arguments).items() if name in names and value is not None
    }
    if arguments.stop_words is not None:
        try:
            given["stop_words"] = tuple(arguments.stop_words.read_text(encoding="utf-8").split())
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"stop words {arguments.stop_words} cannot be read: {error}") from error
    return Settings(**given)
