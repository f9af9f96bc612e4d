"""Charts of one line, from block characters."""

from __future__ import annotations

from collections.abc import Sequence

_HEIGHTS = "▁▂▃▄▅▆▇█"
# Thin, so that the bars of neighbouring lines do not run into one block.
_FULL, _HALF = "━", "╸"


def sparkline(values: Sequence[float]) -> str:
    """Draw one column a value, from zero to the largest."""
    top = max(values, default=0.0)
    if top <= 0:
        return _HEIGHTS[0] * len(values)
    last = len(_HEIGHTS) - 1
    return "".join(_HEIGHTS[min(last, max(0, round(value / top * last)))] for value in values)


def bar(share: float, width: int) -> str:
    """Draw the filled part of a bar, ``share`` (0 to 1) of ``width`` columns, to half a column."""
    full, half = divmod(round(min(1.0, max(0.0, share)) * width * 2), 2)
    return _FULL * full + _HALF * half
