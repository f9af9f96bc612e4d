"""The definition of a term; all that is fast elsewhere is proven equal to this."""

from __future__ import annotations

import re
import unicodedata

from ps2stream.text.combining_marks import stream_safe


def terms_of(text: str) -> frozenset[str]:
    """Return the terms of a text: its runs of word characters, normalised (NFKC) and case-folded."""
    return frozenset(re.findall(r"\w+", unicodedata.normalize("NFKC", stream_safe(text)).casefold()))
