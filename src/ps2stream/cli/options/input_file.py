"""Where records come from: a file or stdin, line by line or as one GeoJSON document."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

LINES, GEOJSON = "lines", "geojson"
STDIN = "-"


class Input(NamedTuple):
    """An open input; ``whole`` where it is one document."""

    descriptor: int
    whole: bool


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``--format``."""
    parser.add_argument(
        "--format",
        choices=(LINES, GEOJSON),
        help=f"{LINES}: a JSON text a line; {GEOJSON}: the whole input is one JSON text, over any number of "
        f"lines (default: {GEOJSON} for files named *.geojson or *.json, else {LINES})",
    )


@contextlib.contextmanager
def open_input(name: str, wanted: str | None) -> Iterator[Input]:
    """Open a file, or stdin for ``-``; the name tells the format unless one is wanted."""
    whole = wanted == GEOJSON or (wanted is None and name.lower().endswith((".geojson", ".json")))
    if name == STDIN:
        yield Input(sys.stdin.fileno(), whole)
        return
    descriptor = os.open(name, os.O_RDONLY)
    try:
        yield Input(descriptor, whole)
    finally:
        os.close(descriptor)
