"""Where results go: noticed before the work, not after it, when they have nowhere to go."""

from __future__ import annotations

import os
from pathlib import Path


def check_target(what: str, path: Path) -> None:
    """Refuse a name that no file can be written to."""
    from ps2stream.errors import ConfigError

    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{what} needs a file in a directory that can be written to; got {path}")
