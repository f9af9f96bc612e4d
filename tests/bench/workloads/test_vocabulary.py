"""Made-up words all differ, and none of them means something to an expression."""

import pytest

from ps2stream.text.terms import terms_of
from ps2stream_bench.workloads.vocabulary import vocabulary


@pytest.mark.parametrize("n", [5, 100, 1_500, 200_000])
def test_there_are_as_many_words_as_asked_for_and_all_differ(n: int) -> None:
    words = vocabulary(n).to_pylist()
    assert len(words) == len(set(words)) == n
    assert set(words[:5]).isdisjoint({"and", "or", "not"})


def test_every_word_is_one_term_and_no_operator() -> None:
    words = vocabulary(200_000).to_pylist()
    assert all(terms_of(word) == {word} for word in words[::37])
    assert {"and", "or", "not"}.isdisjoint(words)


def test_frequent_words_are_short() -> None:
    lengths = [len(word) for word in vocabulary(200_000).to_pylist()]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (2, 9)


def test_fewer_words_are_the_first_of_more() -> None:
    assert vocabulary(3_000).equals(vocabulary(200_000)[:3_000])
