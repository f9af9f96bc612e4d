"""Make text from strangers, and numbers that may be missing, fit to print."""

from __future__ import annotations

import math
import unicodedata

# Cc holds the terminal's escape codes, Cf the marks that reorder or hide text, Zl and Zp break lines;
# Cs, Co and Cn have no picture, and a lone surrogate cannot even be encoded.
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Many marks on one letter spill over the lines above it.
_MOST_MARKS = 3
_UNITS = (("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000))


def printable(text: str) -> str:
    """Put a space for every run of characters that are not for printing, and cap stacks of marks."""
    kept: list[str] = []
    n_marks = 0
    for character in text:
        category = unicodedata.category(character)
        n_marks = n_marks + 1 if category in ("Mn", "Me") else 0
        if n_marks <= _MOST_MARKS:
            kept.append(" " if category in _UNPRINTABLE else character)
    return " ".join("".join(kept).split())


def milliseconds(value: float) -> str:
    """Write a latency; a dash for one not measured yet."""
    if not math.isfinite(value):
        return "-"
    return f"{value / 1000:,.1f} s" if value >= 10_000 else f"{value:,.0f} ms"


def clock(seconds: float) -> str:
    """Write a duration as minutes and seconds."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"{minutes}:{rest:02d}"


def share(part: float, whole: float) -> str:
    """Write a part in per cent; a dash where there is no whole."""
    return f"{part / whole:.0%}" if whole > 0 else "-"


def counted(n: int, noun: str, nouns: str = "") -> str:
    """Write a number of things; ``nouns`` where more of them do not just end in s."""
    return f"{n:,} {noun if n == 1 else nouns or noun + 's'}"


def byte_count(n: int) -> str:
    """Write a number of bytes to two or three digits."""
    if n < 1_000:
        return f"{n} B"
    unit, size = next(each for each in _UNITS if n < each[1] * 999.5 or each is _UNITS[-1])
    return f"{n / size:,.0f} {unit}" if n >= 9.95 * size else f"{n / size:.1f} {unit}"
