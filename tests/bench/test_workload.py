"""The workload of the benchmarks is what it says it is, and the same for the same seed."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.workload import (
    KINDS,
    N_STOP_WORDS,
    Corpus,
    Kind,
    compile_arrays,
    corpus_of,
    draws_q2,
    mixed_events,
    publish_events,
    read_corpus,
    region_of,
    subscribe_events,
    synthetic_corpus,
)
from ps2stream.arrays import Float64s
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing.oracle import run

KM_PER_DEGREE = 111.32


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return synthetic_corpus(3000, 7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_events(corpus: Corpus, kind: Kind) -> None:
    assert synthetic_corpus(3000, 7).texts.equals(corpus.texts)
    assert subscribe_events(corpus, kind, 50, 3).equals(subscribe_events(corpus, kind, 50, 3))
    assert not subscribe_events(corpus, kind, 50, 3).equals(subscribe_events(corpus, kind, 50, 4))


def test_words_follow_zipf_and_a_text_has_about_eleven(corpus: Corpus) -> None:
    assert 9 < corpus.counts.sum() / len(corpus.lon) < 14
    assert 0.35 < corpus.counts[:N_STOP_WORDS].sum() / corpus.counts.sum() < 0.55
    assert (np.diff(corpus.counts) <= 0).all()


def _sides_km(events: pa.Table) -> Float64s:
    sides: Float64s = (events["max_lat"].to_numpy() - events["min_lat"].to_numpy()) * KM_PER_DEGREE
    return sides


def _ranks(corpus: Corpus, events: pa.Table) -> list[list[int]]:
    """List the keywords of every subscription by their place among the words, the most frequent being 0."""
    rank = {word: place for place, word in enumerate(corpus.words.to_pylist())}
    expressions = events["expression"].to_pylist()
    return [[rank[word] for word in text.split() if word not in ("AND", "OR")] for text in expressions]


@pytest.mark.parametrize(("kind", "most_km"), [("q1", 50), ("q2", 100), ("q3", 100)])
def test_regions_are_squares_of_the_paper_s_sides(corpus: Corpus, kind: Kind, most_km: float) -> None:
    sides = _sides_km(subscribe_events(corpus, kind, 2000, 1))
    assert sides.min() >= 0.99
    assert 0.95 * most_km < sides.max() <= most_km + 0.01


def test_sides_are_drawn_evenly(corpus: Corpus) -> None:
    sides = _sides_km(subscribe_events(corpus, "q2", 4000, 1))
    counts, _ = np.histogram(sides, bins=5, range=(1, 100))
    assert counts.min() > 700


@pytest.mark.parametrize("kind", KINDS)
def test_a_subscription_has_one_to_three_keywords_joined_by_and_or_by_or(corpus: Corpus, kind: Kind) -> None:
    events = subscribe_events(corpus, kind, 1000, 1)
    lengths = np.bincount([len(ranks) for ranks in _ranks(corpus, events)], minlength=4)
    assert lengths[0] == 0
    assert lengths[1:].min() > 250
    joined = [text for text in events["expression"].to_pylist() if " AND " in text or " OR " in text]
    assert not any(" AND " in text and " OR " in text for text in joined)
    assert 0.4 < sum(" OR " in text for text in joined) / len(joined) < 0.6


def test_q1_keywords_are_as_frequent_as_the_words_of_texts(corpus: Corpus) -> None:
    drawn = [rank for ranks in _ranks(corpus, subscribe_events(corpus, "q1", 3000, 1)) for rank in ranks]
    for share in (0.02, 0.1, 0.5):
        most = int(share * len(corpus.words))
        expected = corpus.counts[N_STOP_WORDS:most].sum() / corpus.counts[N_STOP_WORDS:].sum()
        assert np.mean(np.array(drawn) < most) == pytest.approx(expected, abs=0.03)


def test_a_q2_subscription_has_a_keyword_outside_the_most_frequent_hundredth(corpus: Corpus) -> None:
    frequent = len(corpus.words) // 100
    ranks = _ranks(corpus, subscribe_events(corpus, "q2", 500, 1))
    assert all(max(each) >= frequent for each in ranks)
    assert any(min(each) < frequent for each in ranks), "the others may be frequent"
    rarest = np.array([max(each) for each in ranks])
    assert np.median(rarest) > len(corpus.words) / 2, "rare keywords are drawn evenly, so most are very rare"


def test_half_of_the_q3_regions_draw_q2() -> None:
    kinds = draws_q2(5)
    assert (len(kinds), kinds.sum()) == (100, 50)
    assert (draws_q2(5) == kinds).all()
    assert (draws_q2(6) != kinds).any()


def test_q3_regions_are_ten_by_ten_equal_parts_of_where_most_publications_are(corpus: Corpus) -> None:
    numbers = region_of(corpus, corpus.lon, corpus.lat)
    assert (numbers.min(), numbers.max()) == (0, 99)
    assert len(np.unique(numbers)) > 90
    for axis, values in ((numbers % 10, corpus.lon), (numbers // 10, corpus.lat)):
        edges = [(values[axis == part].min(), values[axis == part].max()) for part in range(10)]
        assert all(west[1] <= east[0] for west, east in pairwise(edges))
        inner = [high - low for low, high in edges[1:-1]]
        assert max(inner) < 1.3 * min(inner)


def test_a_few_publications_from_overseas_do_not_stretch_the_q3_regions() -> None:
    rng = np.random.default_rng(1)
    lon, lat = rng.uniform(-100, -90, 500), rng.uniform(30, 40, 500)
    texts = pa.array(["storm"] * 520)
    corpus = corpus_of(np.append(lon, np.full(20, 150.0)), np.append(lat, np.full(20, -30.0)), texts)
    assert len(np.unique(region_of(corpus, lon, lat))) > 90
    assert region_of(corpus, np.array([150.0]), np.array([-30.0])).tolist() == [9]


def test_a_q3_subscription_is_of_the_kind_of_the_region_of_its_centre(corpus: Corpus) -> None:
    events = subscribe_events(corpus, "q3", 4000, 1)
    lon, lat = (
        (events[f"min_{name}"].to_numpy() + events[f"max_{name}"].to_numpy()) / 2 for name in ("lon", "lat")
    )
    is_q2 = draws_q2(1)[region_of(corpus, lon, lat)]
    sides, frequent = _sides_km(events), len(corpus.words) // 100
    rarest = np.array([max(ranks) for ranks in _ranks(corpus, events)])
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


def test_arrays_hold_every_event_with_the_rarest_term_first(corpus: Corpus) -> None:
    subscribes, publishes = subscribe_events(corpus, "q1", 300, 1), publish_events(corpus, 400, 301, 2)
    subs, probes = compile_arrays(corpus, subscribes, publishes)
    counts = dict(zip(*np.unique(probes.terms, return_counts=True), strict=True))
    first, last = subs.term_offsets[:-1], subs.term_offsets[1:]
    for clause in (subs.terms[a:b] for a, b in zip(first, last, strict=True)):
        frequencies = [counts.get(term, 0) for term in clause]
        assert frequencies == sorted(frequencies)
    assert subs.seq_from.tolist() == list(range(1, 301))
    assert probes.seq.tolist() == list(range(301, 701))


def test_the_mix_is_five_to_one_and_keeps_as_many_alive(corpus: Corpus) -> None:
    events = mixed_events(corpus, "q1", 200, 1000, 5)
    ops = events["op"].to_pylist()
    assert events.schema.equals(EVENTS)
    assert events["seq"].to_pylist() == list(range(1, 1401))
    assert (ops.count(PUBLISH), ops.count(SUBSCRIBE), ops.count(UNSUBSCRIBE)) == (1000, 300, 100)
    assert ops[:200] == [SUBSCRIBE] * 200
    assert not run(events, corpus.tokenizer().stop_words).rejected


def test_any_parquet_with_places_and_texts_can_take_the_corpus_place(tmp_path: Path) -> None:
    texts = [f"storm w{i % 150} w{i % 7}" for i in range(200)]
    columns = {
        "lat": np.linspace(30, 40, 200),
        "lon": np.linspace(-100, -90, 200),
        "text": pa.array(texts, pa.large_string()),
    }
    pq.write_table(pa.table(columns), tmp_path / "texts.parquet")
    corpus = read_corpus(tmp_path / "texts.parquet")
    assert corpus.words[0].as_py() == "storm"
    assert subscribe_events(corpus, "q2", 10, 1).num_rows == 10
