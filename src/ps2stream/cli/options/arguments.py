"""Types of arguments: points, regions, text and counts.

Only the notation is checked here; whether numbers lie on the map is for the model to say.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence

from ps2stream.errors import quoted
from ps2stream.model.square_region import Bounds

Point = tuple[float, float]

#: Options whose values may begin with a minus sign.
_OPTIONS = ("--region", "--at", "--around")
#: A day.
LONGEST_S = 86_400
_NEGATIVE = re.compile(r"-[\d.]")


def glued(words: Sequence[str]) -> list[str]:
    """Join options with coordinates that begin with a minus, which argparse would take for an option."""
    result: list[str] = []
    for word in words:
        if result and result[-1] in _OPTIONS and _NEGATIVE.match(word):
            result[-1] += f"={word}"
        else:
            result.append(word)
    return result


def point(text: str) -> Point:
    """Read ``LAT,LON``."""
    lat, lon = _numbers(text, "LAT,LON")
    return lat, lon


def bounds(text: str) -> Bounds:
    """Read ``MIN_LON,MIN_LAT,MAX_LON,MAX_LAT``."""
    min_lon, min_lat, max_lon, max_lat = _numbers(text, "MIN_LON,MIN_LAT,MAX_LON,MAX_LAT")
    return min_lon, min_lat, max_lon, max_lat


def unicode_text(text: str) -> str:
    """Refuse bytes that the terminal's encoding does not know, which Python hands over as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"must be valid Unicode; got {quoted(text)}") from None
    return text


def natural(text: str) -> int:
    """Read a whole number above 0."""
    number = count(text)
    if number == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0; got {quoted(text)}")
    return number


def count(text: str) -> int:
    """Read a whole number, 0 or more."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"must be a whole number; got {quoted(text)}")
    if len(text) > 18:  # Python itself gives up at some thousands of digits
        raise argparse.ArgumentTypeError(f"must have at most 18 digits; got {quoted(text)}")
    return int(text)


def seq(text: str) -> int:
    """Read a position in the order of events, a signed number of 64 bits."""
    try:
        number = int(text)
    except ValueError:
        number = 1 << 63
    if not -(1 << 63) <= number < 1 << 63:
        raise argparse.ArgumentTypeError(f"must be a whole number of at most 64 bits; got {quoted(text)}")
    return number


def seconds(text: str) -> float:
    """Read a duration of up to a day."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= LONGEST_S:
        raise argparse.ArgumentTypeError(
            f"must be a number of seconds between 0 and {LONGEST_S:,}; got {quoted(text)}"
        )
    return number


def _numbers(text: str, notation: str) -> list[float]:
    parts = text.split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != notation.count(",") + 1:
        raise argparse.ArgumentTypeError(f"must be {notation} in degrees; got {quoted(text)}")
    return numbers
