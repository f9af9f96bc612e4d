"""Q1, Q2 and Q3 subscriptions are what the paper says, and what their shape says instead."""

import numpy as np
import pyarrow as pa
import pytest

from bench.workloads.reading import ranks_of, regions_of, sides_km_of
from ps2stream_bench.workloads import (
    KINDS,
    N_STOP_WORDS,
    Corpus,
    Kind,
    Shape,
    corpus_of,
    draws_q2,
    subscribe_events,
)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_subscriptions(corpus: Corpus, kind: Kind) -> None:
    assert subscribe_events(corpus, kind, 50, 3).equals(subscribe_events(corpus, kind, 50, 3))
    assert not subscribe_events(corpus, kind, 50, 3).equals(subscribe_events(corpus, kind, 50, 4))


@pytest.mark.parametrize(("kind", "most_km"), [("q1", 50), ("q2", 100), ("q3", 100)])
def test_regions_are_squares_of_the_paper_s_sides(corpus: Corpus, kind: Kind, most_km: float) -> None:
    sides = sides_km_of(subscribe_events(corpus, kind, 2000, 1))
    assert sides.min() >= 0.99
    assert 0.95 * most_km < sides.max() <= most_km + 0.01


def test_sides_are_drawn_evenly(corpus: Corpus) -> None:
    sides = sides_km_of(subscribe_events(corpus, "q2", 4000, 1))
    counts, _ = np.histogram(sides, bins=5, range=(1, 100))
    assert counts.min() > 700


@pytest.mark.parametrize("kind", KINDS)
def test_a_subscription_has_one_to_three_keywords_joined_by_and_or_by_or(corpus: Corpus, kind: Kind) -> None:
    events = subscribe_events(corpus, kind, 1000, 1)
    lengths = np.bincount([len(ranks) for ranks in ranks_of(corpus, events)], minlength=4)
    assert lengths[0] == 0
    assert lengths[1:].min() > 250
    joined = [text for text in events["expression"].to_pylist() if " AND " in text or " OR " in text]
    assert not any(" AND " in text and " OR " in text for text in joined)
    assert 0.4 < sum(" OR " in text for text in joined) / len(joined) < 0.6


def test_q1_keywords_are_as_frequent_as_the_words_of_texts(corpus: Corpus) -> None:
    drawn = [rank for ranks in ranks_of(corpus, subscribe_events(corpus, "q1", 3000, 1)) for rank in ranks]
    for share in (0.02, 0.1, 0.5):
        most = int(share * len(corpus.words))
        expected = corpus.counts[N_STOP_WORDS:most].sum() / corpus.counts[N_STOP_WORDS:].sum()
        assert np.mean(np.array(drawn) < most) == pytest.approx(expected, abs=0.03)


def test_a_q2_subscription_has_a_keyword_outside_the_most_frequent_hundredth(corpus: Corpus) -> None:
    frequent = len(corpus.words) // 100
    ranks = ranks_of(corpus, subscribe_events(corpus, "q2", 500, 1))
    assert all(max(each) >= frequent for each in ranks)
    assert any(min(each) < frequent for each in ranks), "the others may be frequent"
    rarest = np.array([max(each) for each in ranks])
    assert np.median(rarest) > len(corpus.words) / 2, "rare keywords are drawn evenly, so most are very rare"


def test_a_q3_subscription_is_of_the_kind_of_the_region_of_its_centre(corpus: Corpus) -> None:
    events = subscribe_events(corpus, "q3", 4000, 1)
    is_q2 = draws_q2(1)[regions_of(corpus, events)]
    sides, frequent = sides_km_of(events), len(corpus.words) // 100
    rarest = np.array([max(ranks) for ranks in ranks_of(corpus, events)])
    assert 0.2 < is_q2.mean() < 0.8
    # Rounding may put a centre on the other side of a border.
    assert (sides[~is_q2] > 50.01).sum() <= 2
    assert np.mean(sides[is_q2] > 50) == pytest.approx(0.5, abs=0.06)
    assert (rarest[is_q2] < frequent).sum() <= 2
    assert np.median(rarest[~is_q2]) < 0.8 * np.median(rarest[is_q2])


def test_no_keyword_is_a_stop_word(corpus: Corpus) -> None:
    stopped = corpus.tokenizer().stop_words
    expressions = subscribe_events(corpus, "q1", 500, 1)["expression"].to_pylist()
    assert len(stopped) == N_STOP_WORDS
    assert all(stopped.isdisjoint(expression.split()) for expression in expressions)


def test_keywords_of_a_subscription_differ(corpus: Corpus) -> None:
    shape = Shape(keywords=(12, 12))
    for ranks in ranks_of(corpus, subscribe_events(corpus, "q1", 300, 1, shape=shape)):
        assert len(set(ranks)) == len(ranks) == 12


def test_a_shape_says_how_many_keywords_and_how_long_sides_are(corpus: Corpus) -> None:
    events = subscribe_events(corpus, "q1", 1000, 1, shape=Shape(keywords=(4, 6), side_km=(200, 300)))
    assert {len(ranks) for ranks in ranks_of(corpus, events)} == {4, 5, 6}
    sides = sides_km_of(events)
    assert (round(sides.min()), round(sides.max())) == (200, 300)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rare", [True, False])
def test_a_shape_says_whether_a_keyword_is_rare(corpus: Corpus, kind: Kind, rare: bool) -> None:
    events = subscribe_events(corpus, kind, 1000, 1, shape=Shape(keywords=(1, 1), rare=rare))
    drawn = np.median(ranks_of(corpus, events))
    assert (drawn > len(corpus.words) / 3) is np.bool_(rare)


def test_a_shape_that_says_nothing_leaves_the_kind_as_it_is(corpus: Corpus) -> None:
    plain = subscribe_events(corpus, "q3", 100, 1)
    assert subscribe_events(corpus, "q3", 100, 1, shape=Shape()).equals(plain)


@pytest.mark.parametrize("wrong", [{"keywords": (0, 2)}, {"keywords": (3, 2)}, {"side_km": (5.0, 1.0)}])
def test_a_shape_without_sense_is_refused(wrong: dict[str, tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="<= least <= most"):
        Shape(**wrong)  # type: ignore[arg-type]


def test_a_corpus_of_too_few_words_is_refused() -> None:
    texts = pa.array([f"w{i}" for i in range(N_STOP_WORDS + 2)])
    tiny = corpus_of(np.zeros(len(texts)), np.zeros(len(texts)), texts)
    with pytest.raises(ValueError, match="must have 3 words beside 100 stop words; got 102"):
        subscribe_events(tiny, "q1", 10, 1)
