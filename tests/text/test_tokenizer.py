"""Whatever road a text takes, its terms are those of the definition."""

import pickle
import sys
import time
import unicodedata
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.arrays import Ragged
from ps2stream.text.hashing import hash_term
from ps2stream.text.tokenizer import Tokenizer, terms_of, word_characters
from sizes import examples, sized
from strategies import ODD_CHARACTERS, ascii_texts, texts

pytestmark = pytest.mark.kernel

PLAIN = Tokenizer()


def _expected(text: str | None, tokenizer: Tokenizer = PLAIN) -> list[int]:
    return sorted(map(hash_term, tokenizer.terms_of(text or "")))


def _rows(terms: Ragged) -> list[list[int]]:
    return [terms.row(row).tolist() for row in range(terms.n_rows)]


@given(st.lists(st.one_of(st.none(), texts), max_size=12))
@settings(max_examples=examples(150), deadline=None)
def test_tokenize_equals_the_definition_row_by_row(batch: list[str | None]) -> None:
    assert _rows(PLAIN.tokenize(pa.array(batch, pa.string()))) == [_expected(text) for text in batch]


@given(st.lists(ascii_texts, max_size=12))
@settings(max_examples=examples(50), deadline=None)
def test_both_roads_agree_on_ascii(batch: list[str]) -> None:
    # A lone combining mark adds no term but forces the road of the others.
    detour = [f"{text} \u0301" for text in batch]
    plain, other = (_rows(PLAIN.tokenize(pa.array(rows, pa.string()))) for rows in (batch, detour))
    assert plain == other


@given(st.lists(texts, min_size=1, max_size=8), st.data())
@settings(max_examples=examples(50), deadline=None)
def test_slices_and_large_strings_give_the_same(batch: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(batch)))
    stop = data.draw(st.integers(start, len(batch)))
    for kind in (pa.string(), pa.large_string()):
        sliced = pa.array(batch, kind).slice(start, stop - start)
        assert _rows(PLAIN.tokenize(sliced)) == [_expected(text) for text in batch[start:stop]]


@pytest.mark.parametrize("first", ODD_CHARACTERS)
def test_neighbours_in_a_batch_do_not_touch(first: str) -> None:
    """Rows that would compose, reorder or fold differently if they were one string."""
    batch = [f"é{first}" if second == "" else f"{first}{second}" for second in ["", *ODD_CHARACTERS]]
    assert _rows(PLAIN.tokenize(pa.array(batch))) == [_expected(text) for text in batch]


def test_only_a_newline_normalises_or_folds_to_one() -> None:
    """The fact that joining rows by newlines relies on."""
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)])).replace("\n", "")
    assert "\n" not in unicodedata.normalize("NFKC", everything).casefold()


def test_folding_looks_at_one_character_at_a_time() -> None:
    assert "ΣΑΣ ΣΑΣ".casefold() == "".join(map(str.casefold, "ΣΑΣ ΣΑΣ"))
    assert terms_of("ΟΔΟΣ") == terms_of("οδος") == terms_of("οδοσ")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", set()),
        ("...!?", set()),
        ("#Fire, fire; FIRE", {"fire"}),
        ("don't", {"don", "t"}),
        ("snake_case 42", {"snake_case", "42"}),
        ("ﬁre", {"fire"}),
        ("STRASSE straße", {"strasse"}),
        ("u\u0308ber \u00fcber", {"\u00fcber"}),
        ("\u1112\u1161\u11ab", {"한"}),
        ("😀fire😀smoke", {"fire", "smoke"}),
        ("½", {"1", "2"}),
    ],
)
def test_terms_of_known_texts(text: str, terms: set[str]) -> None:
    assert terms_of(text) == terms
    assert _rows(PLAIN.tokenize(pa.array([text]))) == [sorted(map(hash_term, terms))]


def test_the_turkish_capital_i_folds_as_the_definition_says() -> None:
    # It folds to i plus a combining dot, which is no word character.
    assert terms_of("DİYARBAKIR") == {"di", "yarbakir"}
    assert _rows(PLAIN.tokenize(pa.array(["DİYARBAKIR"]))) == [_expected("DİYARBAKIR")]


def test_stop_words_are_normalised_and_removed_on_both_roads() -> None:
    tokenizer = Tokenizer(["The", "ÜBER", "don't"])
    assert tokenizer.stop_words == {"the", "über", "don", "t"}
    batch = ["the fire the", "über the Fire", "don't", None, "THE"]
    assert tokenizer.terms_of("The über fire") == {"fire"}
    assert _rows(tokenizer.tokenize(pa.array(batch))) == [_expected(text, tokenizer) for text in batch]
    assert _rows(tokenizer.tokenize(pa.array(batch))) == [[hash_term("fire")]] * 2 + [[]] * 3


def test_many_stop_words_are_all_removed() -> None:
    words = [f"w{number}" for number in range(300)]
    tokenizer = Tokenizer(words[:200])
    (row,) = _rows(tokenizer.tokenize(pa.array([" ".join(words)])))
    assert row == sorted(map(hash_term, words[200:]))


def test_one_string_of_stop_words_is_refused() -> None:
    with pytest.raises(TypeError, match="several strings"):
        Tokenizer("the")


def test_bytes_that_are_not_utf8_separate_terms() -> None:
    data = b"fire\xffsmoke\xe2\x82rain"
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 12, 16], pa.int32()).buffers()[1], pa.py_buffer(data)]
    )
    first, second = (sorted(map(hash_term, terms)) for terms in ({"fire", "smoke"}, {"rain"}))
    assert _rows(PLAIN.tokenize(broken)) == [first, second]


@pytest.mark.parametrize("extra", ["", " über"])
def test_long_texts_take_linear_time(extra: str) -> None:
    n_words = sized(100, plain=10)
    short, long = (" ".join(f"w{number}" for number in range(n)) + extra for n in (n_words, 100 * n_words))
    assert _rows(PLAIN.tokenize(pa.array([long]))) == [_expected(long)]

    def seconds(batch: list[str]) -> float:
        # Of this thread's work, not of the clock: what else the machine does is not counted.
        array = pa.array(batch)
        best = float("inf")
        for _ in range(3):
            start = time.thread_time()
            PLAIN.tokenize(array)
            best = min(best, time.thread_time() - start)
        return best

    # The same words in one text or in a hundred: quadratic would be a factor of a hundred.
    assert seconds([long]) < 10 * seconds([short] * 100)


def test_a_tokenizer_survives_pickling_and_compares_by_its_stop_words() -> None:
    tokenizer = Tokenizer(["the"])
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy == tokenizer
    assert hash(copy) == hash(tokenizer)
    assert copy != PLAIN
    assert _rows(copy.tokenize(pa.array(["the fire"]))) == [[hash_term("fire")]]


def test_tokenizing_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Tokenizer(["the"]).tokenize(pa.array(["the fire", "über", None]))


def test_an_empty_array_has_no_rows() -> None:
    terms = PLAIN.tokenize(pa.array([], pa.string()))
    assert terms.n_rows == 0
    assert terms.values.dtype == np.uint64


def test_word_characters_are_those_of_the_regular_expression() -> None:
    flags = word_characters()
    assert [chr(code) for code in range(128) if flags[code]] == sorted(
        "0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    )
    assert flags[ord("한")]
    assert not flags[0x0301]
    assert not flags[0x1F600]
