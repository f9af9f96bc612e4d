"""What normalising (NFKC) and case folding make of each character, in tables made by Python itself.

Normalising looks at more than one character: marks are put in order and composed with what stands before
them. But nearly all characters come out the same whatever their neighbours are. Let D(c) be the full
compatibility decomposition of c. Where D(c) begins with a character of combining class 0, no mark moves past
it. Where that first character is not the second of any composition either, nothing before it composes with
it, and whatever follows in D(c) has its starter within D(c). A text of such characters is
normalised one by one, and folding never looks at neighbours.

The others are told apart:

- a mark (D(m) = m, a combining class, no part of a word) composes with the letter before it by the table of
  pairs, or separates words: ``text.non_ascii`` does that, for letters without a decomposition of their own;
- a character whose D(c) begins with a starter that does compose to the left (jamo, some vowel signs of
  India) comes out the same unless it follows a character that it might compose with;
- whatever is left is hard, and a text that has it takes the road through Python.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Flags, Int64s, UInt32s, UInt64s
from ps2stream.kernels import kernel

N_CODE_POINTS = 0x110000

# An action has 21 bits of a code point, or of the number of a string, or of a combining class; then:
CODE = (1 << 21) - 1
#: Bits of what a character may compose with if it follows directly, and 3 bits above of what it follows so.
LEADS, FOLLOWS = 21, 24
ANY = 0b111
#: A mark after this character takes the road through Python.
CLOSED = 1 << 27
#: Its kind: it parts words, becomes a character of a word, becomes a string, is a mark, or is hard.
KIND = 28
GAP, WORD, STRING, MARK, HARD = range(5)

_VOWEL, _FINAL, _OTHER = 1, 2, 4
_INITIALS, _VOWELS, _FINALS = range(0x1100, 0x1113), range(0x1161, 0x1176), range(0x11A8, 0x11C3)
_SURROGATES = slice(0xD800, 0xE000)
_CHUNK = 256


class Characters(NamedTuple):
    """``actions`` by code point; string ``s`` is ``strings[offsets[s]:offsets[s + 1]]``, actions again.

    ``pairs`` is open addressing of ``first << 21 | second``; 0 is free. ``composites`` are what they become.
    """

    actions: UInt32s
    strings: UInt32s
    offsets: Int64s
    pairs: UInt64s
    composites: UInt32s


@functools.cache
def word_characters() -> Flags:
    """Tell for every code point whether ``\\w`` matches it; made by the regular expression itself."""
    flags = np.zeros(N_CODE_POINTS, dtype=np.bool_)
    for run in re.finditer(r"\w+", _everything()):
        flags[run.start() : run.end()] = True
    return flags


@functools.cache
def characters() -> Characters:
    """Make the tables, which takes a moment: not before the first text that is not ASCII."""
    classes = np.fromiter(map(unicodedata.combining, _everything()), np.uint32, N_CODE_POINTS)
    is_word = word_characters()
    actions = np.arange(N_CODE_POINTS, dtype=np.uint32) | (is_word * np.uint32(WORD << KIND))
    marks = np.flatnonzero(classes)
    actions[marks] = classes[marks] | np.uint32(MARK << KIND)
    actions[marks[is_word[marks]]] = HARD << KIND
    actions[_SURROGATES] = HARD << KIND
    changing = list(_changing())
    pairs = _pairs(changing)
    strings: list[list[int]] = []
    for character in changing:
        actions[ord(character)] = _action(character, classes, is_word, strings)
    for (first, second), composite in pairs.items():
        if classes[second] == 0:
            actions[first] |= np.uint32(_OTHER << LEADS)
            actions[second] |= np.uint32(_OTHER << FOLLOWS)
        elif is_word[composite] > is_word[first]:
            actions[second] = HARD << KIND
    for jamo, bits in ((_INITIALS, _VOWEL << LEADS), (_VOWELS, _VOWEL << FOLLOWS | _FINAL << LEADS)):
        actions[jamo.start : jamo.stop] |= np.uint32(bits)
    actions[_FINALS.start : _FINALS.stop] |= np.uint32(_FINAL << FOLLOWS)
    _inherit(actions, changing)
    return Characters(actions, *_laid_out(strings), *_hashed(pairs))


@kernel
def pair_slot(first: int, second: int, size: int) -> int:
    """Return where the search for a pair begins in a table of a power of two."""
    return (31 * first + second) & (size - 1)


def _everything() -> str:
    """Return all characters in order, with spaces for surrogates."""
    codes = np.arange(N_CODE_POINTS, dtype="<u4")
    codes[_SURROGATES] = ord(" ")
    return codes.tobytes().decode("utf-32-le")


def _changing() -> Iterator[str]:
    """Give the characters that do not stay what they are: they decompose or fold."""
    everything = _everything()
    for start in range(0, N_CODE_POINTS, _CHUNK):
        chunk = everything[start : start + _CHUNK]
        # One look at many: most are ideographs, private or not given to anything.
        if not unicodedata.is_normalized("NFKD", chunk) or chunk.casefold() != chunk:
            for each in chunk:
                if not unicodedata.is_normalized("NFKD", each) or each.casefold() != each:
                    yield each


def _action(character: str, classes: UInt32s, is_word: Flags, strings: list[list[int]]) -> int:
    """Say what becomes of a character that changes."""
    parts = unicodedata.normalize("NFKD", character)
    if classes[ord(parts[0])]:
        return HARD << KIND
    folded = [ord(each) for each in unicodedata.normalize("NFKC", character).casefold()]
    closed = CLOSED if parts != character else 0
    if not any(is_word[code] for code in folded):
        return GAP << KIND | closed
    if len(folded) == 1:
        return WORD << KIND | closed | folded[0]
    strings.append([(WORD if is_word[code] else GAP) << KIND | CLOSED | code for code in folded])
    return STRING << KIND | CLOSED | len(strings) - 1


def _pairs(changing: Iterable[str]) -> dict[tuple[int, int], int]:
    """Return what two characters compose to; syllables of Hangul, which are computed, are not among them."""
    found = {}
    for each in changing:
        parts = unicodedata.decomposition(each).split()
        if len(parts) == 2 and parts[0][0] != "<" and unicodedata.is_normalized("NFC", each):
            first, second = (int(part, 16) for part in parts)
            found[first, second] = ord(each)
    return found


def _inherit(actions: UInt32s, changing: Iterable[str]) -> None:
    """Let characters lead what the last of their parts leads, and follow what the first follows."""
    leads, follows = np.uint32(ANY << LEADS), np.uint32(ANY << FOLLOWS)
    for each in changing:
        parts, composed = (unicodedata.normalize(form, each) for form in ("NFKD", "NFKC"))
        if parts != each:
            last = actions[ord(parts[-1])] | actions[ord(composed[-1])]
            actions[ord(each)] |= last & leads | actions[ord(parts[0])] & follows


def _laid_out(strings: list[list[int]]) -> tuple[UInt32s, Int64s]:
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return np.array([action for string in strings for action in string], np.uint32), offsets


def _hashed(pairs: dict[tuple[int, int], int]) -> tuple[UInt64s, UInt32s]:
    """Build an open-addressing table, at most a quarter full."""
    size = 1 << (4 * len(pairs)).bit_length()
    keys, composites = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
    for (first, second), composite in pairs.items():
        slot = pair_slot(first, second, size)
        while keys[slot]:
            slot = (slot + 1) & (size - 1)
        keys[slot], composites[slot] = first << LEADS | second, composite
    return keys, composites
