"""Texts of ASCII in other scripts: as many words, each always written alike; only the script differs."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pyarrow as pa

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абцдефгхийклмнопчрстувшъыз"
_BOTH_CASES = str.maketrans(_LETTERS + _LETTERS.upper(), _CYRILLIC + _CYRILLIC.upper())
_ACCENTS = str.maketrans("aeiouncAEIOU", "áèîöúñçÁÈÎÖÚ")
_FULL_WIDTH = {ord(letter): ord(letter) + 0xFEE0 for letter in _LETTERS + _LETTERS.upper()}
_FIRST_IDEOGRAPH, _N_IDEOGRAPHS = 0x4E00, 20_000


def _accents(text: str) -> str:
    return text.translate(_ACCENTS)


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", _accents(text))


def _cyrillic(text: str) -> str:
    return text.translate(_BOTH_CASES)


def _full_width(text: str) -> str:
    return text.translate(_FULL_WIDTH)


def _ideographs(text: str) -> str:
    return " ".join(map(_ideograph_word, text.split()))


def _ideograph_word(word: str) -> str:
    first, second = divmod(int.from_bytes(word.encode(), "big") % _N_IDEOGRAPHS**2, _N_IDEOGRAPHS)
    return chr(_FIRST_IDEOGRAPH + first) + chr(_FIRST_IDEOGRAPH + second)


def _emoji(text: str) -> str:
    return f"\N{GRINNING FACE} {text} \N{FIRE}\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}"


_WRITERS: dict[str, Callable[[str], str]] = {
    "accents": _accents,
    "accents, decomposed": _decomposed,
    "Cyrillic": _cyrillic,
    "ideographs": _ideographs,
    "full-width": _full_width,
    "emoji": _emoji,
}

ASCII, MIXED = "ASCII", "a fifth not ASCII"
#: Every text as it is, every fifth one in another script, and all in one.
SCRIPTS = (ASCII, MIXED, *_WRITERS)


def written_in(script: str, texts: pa.Array) -> pa.Array:
    """Write texts in one of :data:`SCRIPTS`."""
    if script == ASCII:
        return texts
    plain = texts.to_pylist()
    if script != MIXED:
        return pa.array(list(map(_WRITERS[script], plain)), pa.string())
    writers = list(_WRITERS.values())
    mixed = [
        writers[row // 5 % len(writers)](text) if row % 5 == 0 else text for row, text in enumerate(plain)
    ]
    return pa.array(mixed, pa.string())
