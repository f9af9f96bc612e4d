"""Texts cut by tables have the terms of the definition, whatever characters meet in them."""

from __future__ import annotations

import itertools
import random
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.arrays import Ragged
from ps2stream.arrow import spans_of
from ps2stream.text.characters import (
    ANY,
    CODE,
    FOLLOWS,
    GAP,
    HARD,
    KIND,
    LEADS,
    MARK,
    N_CODE_POINTS,
    STRING,
    WORD,
    characters,
)
from ps2stream.text.hashing import hash_term
from ps2stream.text.non_ascii import GROWTH, cut_non_ascii
from ps2stream.text.stop_words import stop_table
from ps2stream.text.terms import terms_of
from ps2stream.text.tokenizer import Tokenizer, seal, seal_marked

CHARACTERS = [chr(code) for code in range(N_CODE_POINTS) if not 0xD800 <= code < 0xE000]
NO_STOPS = stop_table([])


def check(texts: list[str]) -> None:
    terms = Tokenizer().tokenize(pa.array(texts, pa.string()))
    hashes: dict[str, int] = {}
    for row, text in enumerate(texts):
        expected = terms_of(text)
        for term in expected:
            if term not in hashes:
                hashes[term] = hash_term(term)
        assert terms.row(row).tolist() == sorted(hashes[term] for term in expected), ascii(text)


def hard_rows(texts: list[str]) -> list[int]:
    """Return the texts that the tables leave to Python."""
    spans = spans_of(pa.array(texts, pa.string()))
    _, hard = cut_non_ascii(spans.data, spans.offsets, np.arange(len(texts)), characters(), NO_STOPS)
    return [int(row) for row in hard]


def odd_characters() -> dict[str, list[str]]:
    """Return the characters that the tables treat apart, by why."""
    tables = characters()
    kinds = tables.actions >> np.uint32(KIND)
    keys = [int(key) for key in tables.pairs if key]
    syllables = range(0xAC00, 0xD7A4)
    found = {
        "first": {key >> LEADS for key in keys},
        "second": {key & CODE for key in keys},
        "leading": set(np.flatnonzero(tables.actions >> np.uint32(LEADS) & np.uint32(ANY)).tolist())
        - set(syllables[40:]),
        "following": set(np.flatnonzero(tables.actions >> np.uint32(FOLLOWS) & np.uint32(ANY)).tolist()),
        "mark": set(np.flatnonzero(kinds == MARK).tolist()),
        "hard": set(np.flatnonzero(kinds == HARD).tolist()) - set(range(0xD800, 0xE000)),
        "string": set(np.flatnonzero(kinds == STRING).tolist()),
    }
    return {name: [chr(code) for code in sorted(codes)] for name, codes in found.items()}


def test_every_character_alone_and_in_a_word() -> None:
    # Those of no word that nothing becomes of are all alike: some of them will do.
    actions = characters().actions
    plain = np.arange(N_CODE_POINTS, dtype=np.uint32)
    is_dull = (actions == plain) | (actions == (plain | np.uint32(WORD << KIND)))
    told = [each for each in CHARACTERS if not is_dull[ord(each)] or ord(each) % 16 == 0]
    check(told)
    check([f"a{each}B" for each in told])


def test_characters_that_the_tables_leave_alone_stay_what_they_are() -> None:
    actions = characters().actions
    for code in np.flatnonzero(actions >> np.uint32(KIND) <= WORD).tolist():
        if actions[code] & np.uint32(CODE) == code:
            each = chr(code)
            assert unicodedata.normalize("NFKC", each).casefold() == each
            assert unicodedata.combining(each) == 0


@pytest.mark.parametrize(
    ("left", "right"), [("first", "second"), ("leading", "following"), ("string", "mark"), ("mark", "mark")]
)
def test_pairs_of_characters_that_may_compose(left: str, right: str) -> None:
    odd = odd_characters()
    pairs = list(itertools.product(odd[left], odd[right]))
    chosen = random.Random(1).sample(pairs, min(len(pairs), 30_000))
    check([f"{a}{b}" for a, b in chosen])
    check([f"x{a}{b}y" for a, b in chosen])


@pytest.mark.parametrize("seed", range(3))
def test_runs_of_characters_that_are_treated_apart(seed: int) -> None:
    rng = random.Random(seed)
    kinds = [*odd_characters().values(), CHARACTERS, list("aEi o"), list("\u0301\u0323\u0308\u0327\u0345")]
    check(["".join(rng.choice(rng.choice(kinds)) for _ in range(rng.randint(2, 6))) for _ in range(20_000)])


def test_composed_letters_taken_apart_and_with_marks_in_any_order() -> None:
    texts = []
    for code in characters().composites[characters().composites > 0].tolist():
        parts = unicodedata.normalize("NFD", chr(code))
        texts += [
            f"x{parts}y",
            parts[::-1],
            *(parts + "".join(each) for each in itertools.product("\u0301\u0323", repeat=2)),
        ]
    check(texts)


@pytest.mark.kernel
@pytest.mark.parametrize(
    "text",
    [
        "Über",
        "u\u0308ber",
        "o\u0302\u0301",
        "Привет",
        "и\u0306",
        "\uff26\uff35\uff2c\uff2c",
        "ﬁre ½",
        "東京 tokyo",
        "한국ㅠㅠ",
        "ก็น้ำ",
        "हिन्दी",
        "❤️👍🏽",
    ],
)
def test_common_scripts_need_no_python(text: str) -> None:
    assert hard_rows([text]) == []
    check([text])


@pytest.mark.kernel
@pytest.mark.parametrize(
    "text", ["a\u0301\u0323", "\u1112\u1161\u11ab", "é\u0323", "\u0345", "ㅋㅠ", "ｶﾞ", "I\u0307"]
)
def test_what_depends_on_neighbours_in_other_ways_goes_through_python(text: str) -> None:
    assert hard_rows(["plain", text]) == [1]
    check(["plain", text])


@pytest.mark.kernel
@pytest.mark.parametrize(
    "data",
    [
        b"\x80",
        b"\xc1\x81",
        b"\xc3",
        b"\xc3a",
        b"\xe0\x80\x80",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xff",
        b"\xf0\x9f\x98",
        b"\xe2\xff\xff",
        b"\xf4\xff\xff\xff",
    ],
)
def test_bytes_that_are_not_utf8_are_told_from_those_that_are(data: bytes) -> None:
    row = b"fire" + data + b"rain"
    offsets = pa.array([0, len(row), len(row) + len(data)], pa.int32())
    texts = pa.Array.from_buffers(pa.string(), 2, [None, offsets.buffers()[1], pa.py_buffer(row + data)])
    terms = Tokenizer().tokenize(texts)
    for number, each in enumerate((row, data)):
        expected = sorted(map(hash_term, terms_of(each.decode(errors="replace"))))
        assert terms.row(number).tolist() == expected


def test_no_character_outgrows_the_capacity_for_its_terms() -> None:
    tables = characters()
    for code in np.flatnonzero(tables.actions >> np.uint32(KIND) == STRING).tolist():
        string = int(tables.actions[code]) & CODE
        parts = tables.strings[tables.offsets[string] : tables.offsets[string + 1]].tolist()
        n_bytes = len(chr(code).encode())
        assert sum(len(chr(part & CODE).encode()) for part in parts) <= GROWTH * n_bytes
        assert sum(part >> KIND == GAP for part in parts) <= n_bytes
    for code in np.flatnonzero(tables.actions >> np.uint32(KIND) == WORD).tolist():
        assert len(chr(int(tables.actions[code]) & CODE).encode()) <= GROWTH * len(chr(code).encode())


@pytest.mark.kernel
def test_rows_are_sealed_in_the_order_they_are_asked_for() -> None:
    written = Tokenizer(["the"]).cut(pa.array(["fire the Fire smoke", "", "über über", "rain"]))
    assert written.row(0).tolist() == [hash_term(term) for term in ("fire", "fire", "smoke")]
    sealed = seal(written, np.array([3, 0, 2, 1]))
    rows = [sealed.row(row).tolist() for row in range(4)]
    expected = [["rain"], ["fire", "smoke"], ["über"], []]
    assert rows == [sorted(map(hash_term, terms)) for terms in expected]


@pytest.mark.kernel
@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 50), max_size=70)), max_size=6))
def test_rows_that_are_not_marked_are_left_empty(rows: list[tuple[bool, list[int]]]) -> None:
    offsets = np.cumsum([0, *(len(terms) for _, terms in rows)])
    written = Ragged(np.array([term for _, terms in rows for term in terms], np.uint64), offsets)
    sealed = seal_marked(written, np.array([is_marked for is_marked, _ in rows], np.bool_))
    found = [sealed.row(row).tolist() for row in range(len(rows))]
    assert found == [sorted(set(terms)) if is_marked else [] for is_marked, terms in rows]
