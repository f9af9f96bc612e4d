"""Runs of combining marks, kept short.

Normalising puts the marks behind a letter in order, and Python does that by insertion: 80,000 marks, a text
of 160 KB, took nine seconds. Unicode's Stream-Safe Text Format (UAX #15, D4) has no more than 30 of them in a
row, far more than any language uses; a longer run is parted by a character that joins nothing. What is behind
it neither moves nor composes, and as marks are no part of words, only a letter that would have
composed with the thirty-first mark comes out differently.
"""

from __future__ import annotations

import functools
import re
import unicodedata

#: The most non-starters in a row, counted in the compatibility decomposition.
MAX_MARKS = 30

_GRAPHEME_JOINER = "\u034f"

# No character decomposes into more than two non-starters and nothing else, or ends with more than three.
# Those of the first kind are no part of words, but for two voice marks of Japanese. So a text without such a
# run has none that is too long (a test asks all characters). Leaving ASCII out as well took twice the time.
_SUSPECT = re.compile(rf"[\W\uff9e\uff9f]{{{(MAX_MARKS - 2) // 2},}}")


def stream_safe(text: str) -> str:
    """Part runs of more than :data:`MAX_MARKS` combining marks (UAX #15, Stream-Safe Text Process)."""
    return text if text.isascii() else _SUSPECT.sub(_parted, text)


def _parted(run: re.Match[str]) -> str:
    before = run.string[run.start() - 1 : run.start()] if run.start() else ""
    n_marks = _marks(before)[1] if before else 0
    parts = []
    for character in run.group():
        first, last, is_all = _marks(character)
        if n_marks + first > MAX_MARKS:
            parts.append(_GRAPHEME_JOINER)
            n_marks = 0
        parts.append(character)
        n_marks = n_marks + first if is_all else last
    return "".join(parts)


@functools.lru_cache(maxsize=1 << 12)
def _marks(character: str) -> tuple[int, int, bool]:
    """Count the non-starters that a decomposition begins and ends with; say whether it has nothing else."""
    classes = [unicodedata.combining(each) for each in unicodedata.normalize("NFKD", character)]
    starters = [at for at, each in enumerate(classes) if each == 0]
    if not starters:
        return len(classes), len(classes), True
    return starters[0], len(classes) - 1 - starters[-1], False
