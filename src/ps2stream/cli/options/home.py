"""``--home``: which deployment a command works on."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ps2stream.deployment.home import Home

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
    return Home(arguments.home)
