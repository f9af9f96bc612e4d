"""``--home``: which deployment a command works on."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ps2stream.deployment.home import Home
from ps2stream.errors import StateError

DEFAULT = "./ps2stream-data"
VARIABLE = "PS2STREAM_HOME"


def add_home(parser: argparse.ArgumentParser) -> None:
    """Add ``--home``."""
    parser.add_argument(
        "--home",
        metavar="DIR",
        type=Path,
        default=Path(os.environ.get(VARIABLE) or DEFAULT),
        help=f"directory of the deployment (default: {VARIABLE}, else {DEFAULT}; now %(default)s)",
    )


def home_from(arguments: argparse.Namespace) -> Home:
    """Return the home that was named; it need not exist yet."""
    home = Home(arguments.home.absolute())
    if arguments.home.exists() and not arguments.home.is_dir():
        raise StateError(f"the home of a deployment is a directory; {arguments.home} is a file")
    return home


def existing_home(arguments: argparse.Namespace) -> Home:
    """Return the home that was named, for commands that only look at it; raise where there is none."""
    home = home_from(arguments)
    if not home.directory.is_dir():
        raise StateError(
            f"no deployment at {arguments.home}: there is no such directory. "
            f"'ps2stream subscribe' and 'publish' make one; --home or {VARIABLE} name another"
        )
    return home
