"""Words are ranked as the definition of a term ranks them."""

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.text.terms import terms_of
from ps2stream_bench.workloads.words import rank_words

# Few characters, so that words meet: capitals, separators, accents, and a ligature that becomes two letters.
_TEXTS = st.lists(st.text(st.sampled_from("abB_7 .,-\n'éÉß\ufb01\u0130"), max_size=12), max_size=8)


@given(_TEXTS)
def test_words_are_the_terms_of_the_texts_by_falling_frequency(texts: list[str]) -> None:
    ranked = rank_words(pa.array(texts, pa.string()))
    counted = Counter(term for text in texts for term in terms_of(text))
    expected = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    assert list(zip(ranked.words.to_pylist(), ranked.counts.tolist(), strict=True)) == expected


@given(_TEXTS)
def test_every_text_has_the_ranks_of_its_terms(texts: list[str]) -> None:
    ranked = rank_words(pa.array(texts, pa.string()))
    words = ranked.words.to_pylist()
    assert ranked.ranks.n_rows == len(texts)
    for row, text in enumerate(texts):
        assert sorted(words[rank] for rank in ranked.ranks.row(row)) == sorted(terms_of(text))


def test_a_null_has_no_words_and_large_strings_are_strings() -> None:
    ranked = rank_words(pa.array(["storm", None, "Storm, ice"], pa.large_string()))
    assert ranked.words.to_pylist() == ["storm", "ice"]
    assert ranked.ranks.offsets.tolist() == [0, 1, 1, 3]
