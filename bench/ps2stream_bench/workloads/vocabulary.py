"""Made-up words that can be spoken, the frequent ones short as in English."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa

_ONSETS = "bdfgklmnprstvz"
_VOWELS = "aeiou"
#: No word ends like a keyword of expressions (``not``) with these.
_CODAS = "lmnrs"
#: Up to which rank words have which form; o is an onset, v a vowel, c a coda. Tweets have 2.3 letters a
#: word in the first ten ranks, 3.4 up to 100, 4.9 up to 1,000, 5.8 to 5,000, 6.7 to 20,000 and 8.8 beyond.
_FORMS = ((20, "ov"), (100, "ovc"), (1_000, "ovovc"), (5_000, "ovovov"), (20_000, "ovovovc"))
_RARE_FORM = "ovovovovc"
_LETTERS = {"o": _ONSETS, "v": _VOWELS, "c": _CODAS}
#: Steps through the words of a form, so that neighbours do not look alike. A prime that divides no number of
#: words, all of which are products of 14 and 5: every word comes once.
_STEP = 1_000_003


@functools.cache
def vocabulary(n: int) -> pa.StringArray:
    """Make ``n`` words that all differ, the one of rank 1 first."""
    parts, first = [], 0
    for last, form in (*_FORMS, (n, _RARE_FORM)):
        parts.append(_words(form, max(min(last, n) - first, 0)))
        first = max(first, min(last, n))
    return pa.concat_arrays(parts)


def _words(form: str, n: int) -> pa.StringArray:
    sizes = [len(_LETTERS[kind]) for kind in form]
    total = int(np.prod(sizes))
    if n > total:
        raise ValueError(f"words of the form {form!r} must be at most {total:,}; got {n:,}")
    number = np.arange(n, dtype=np.int64) * _STEP % total
    letters = np.empty((n, len(form)), np.uint8)
    for index, kind in enumerate(form):
        number, letter = np.divmod(number, sizes[index])
        letters[:, index] = np.frombuffer(_LETTERS[kind].encode(), np.uint8)[letter]
    offsets = np.arange(n + 1, dtype=np.int32) * len(form)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))
