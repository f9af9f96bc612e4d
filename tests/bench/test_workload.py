"""The workload of the benchmarks is what it says it is, and the same for the same seed."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ps2stream.arrays import Float64s, Int64s
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing.oracle import run
from ps2stream_bench.workload import (
    KINDS,
    N_STOP_WORDS,
    Corpus,
    Kind,
    busy_by_interval,
    compile_arrays,
    corpus_of,
    draws_q2,
    drifting_events,
    kinds_by_interval,
    mixed_events,
    publish_events,
    read_corpus,
    region_of,
    subscribe_events,
    synthetic_corpus,
)

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


def _regions(corpus: Corpus, subscribes: pa.Table) -> Int64s:
    """Return the Q3 regions of the centres of subscriptions."""
    lon, lat = (
        (subscribes[f"min_{name}"].to_numpy() + subscribes[f"max_{name}"].to_numpy()) / 2
        for name in ("lon", "lat")
    )
    return region_of(corpus, lon, lat)


def test_a_q3_subscription_is_of_the_kind_of_the_region_of_its_centre(corpus: Corpus) -> None:
    events = subscribe_events(corpus, "q3", 4000, 1)
    is_q2 = draws_q2(1)[_regions(corpus, events)]
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


def test_ten_regions_change_their_kind_from_interval_to_interval() -> None:
    kinds = kinds_by_interval(5, 20)
    assert kinds.shape == (20, 100)
    assert (kinds[0] == draws_q2(5)).all()
    assert [(this != following).sum() for this, following in pairwise(kinds)] == [10] * 19
    moves = {tuple(np.flatnonzero(this != following)) for this, following in pairwise(kinds)}
    assert len(moves) == 19, "other regions every time"
    assert (kinds_by_interval(5, 20) == kinds).all()
    assert (kinds_by_interval(6, 20) != kinds).any()
    assert (kinds_by_interval(5, 4, share=0.25)[1] != kinds[0]).sum() == 25


@pytest.mark.parametrize("rush", [1.0, 5.0])
def test_a_drifting_stream_is_mixed_five_to_one_and_keeps_as_many_alive(corpus: Corpus, rush: float) -> None:
    events = drifting_events(corpus, 200, 6000, 5, n_intervals=3, rush=rush)
    ops = events["op"].to_pylist()
    assert events.schema.equals(EVENTS)
    assert events["seq"].to_pylist() == list(range(1, 7401))
    assert (ops.count(PUBLISH), ops.count(SUBSCRIBE), ops.count(UNSUBSCRIBE)) == (6000, 800, 600)
    n_live = np.cumsum([{SUBSCRIBE: 1, UNSUBSCRIBE: -1}.get(op, 0) for op in ops])[199:]
    assert (n_live.min(), n_live.max()) == (200, 201)
    assert not run(events, corpus.tokenizer().stop_words).rejected


def test_a_drifting_stream_is_the_same_for_the_same_seed(corpus: Corpus) -> None:
    events = drifting_events(corpus, 100, 2000, 5, n_intervals=4, rush=3.0)
    assert drifting_events(corpus, 100, 2000, 5, n_intervals=4, rush=3.0).equals(events)
    assert not drifting_events(corpus, 100, 2000, 6, n_intervals=4, rush=3.0).equals(events)
    assert not drifting_events(corpus, 100, 2000, 5, n_intervals=5, rush=3.0).equals(events)


def test_what_does_not_drift_is_the_mixed_stream_of_q3(corpus: Corpus) -> None:
    mixed = mixed_events(corpus, "q3", 100, 2000, 5)
    assert drifting_events(corpus, 100, 2000, 5, n_intervals=1, rush=5.0).equals(mixed)
    assert drifting_events(corpus, 100, 2000, 5, n_intervals=4, share=0.0).equals(mixed)
    drifting = drifting_events(corpus, 100, 2000, 5, n_intervals=4)
    same = ["seq", "op", "id", "lat", "lon", "text"]
    assert drifting.select(same).equals(mixed.select(same)), "the paper moves no publications"
    assert not drifting["max_lat"].equals(mixed["max_lat"])


def test_subscriptions_are_of_the_kind_that_their_region_has_when_they_begin(corpus: Corpus) -> None:
    n_live, n_intervals = 1000, 4
    events = drifting_events(corpus, n_live, 10 * n_live * n_intervals, 1, n_intervals=n_intervals, share=0.5)
    subscribes = events.filter(pc.equal(events["op"], SUBSCRIBE))
    regions, sides = _regions(corpus, subscribes), _sides_km(subscribes)
    rarest = np.array([max(ranks) for ranks in _ranks(corpus, subscribes)])
    kinds, frequent = kinds_by_interval(1, n_intervals, 0.5), len(corpus.words) // 100
    for interval in range(n_intervals):
        begun = slice(interval and n_live * (interval + 1), n_live * (interval + 2))
        is_q2 = kinds[interval][regions[begun]]
        # Rounding may put a centre on the other side of a border.
        assert (sides[begun][~is_q2] > 50.01).sum() <= 2
        assert np.mean(sides[begun][is_q2] > 50) == pytest.approx(0.5, abs=0.1)
        assert (rarest[begun][is_q2] < frequent).sum() <= 2


def test_an_interval_of_as_many_subscribes_as_live_replaces_nearly_all_of_them(corpus: Corpus) -> None:
    n_live, n_intervals = 500, 3
    events = drifting_events(corpus, n_live, 10 * n_live * n_intervals, 1, n_intervals=n_intervals)
    n_mixed = (events.num_rows - n_live) // n_intervals
    begun: dict[str, int] = {}
    for row, (op, name) in enumerate(zip(events["op"].to_pylist(), events["id"].to_pylist(), strict=True)):
        interval, is_last = (row - n_live) // n_mixed, (row - n_live + 1) % n_mixed == 0
        if op == SUBSCRIBE:
            begun[name] = interval
        elif op == UNSUBSCRIBE:
            del begun[name]
        if is_last and interval >= 0:
            assert sum(when == interval for when in begun.values()) > 0.85 * len(begun)
    assert interval == n_intervals - 1


def test_a_rush_makes_other_regions_busy_in_every_interval_but_the_first(corpus: Corpus) -> None:
    n_intervals, rush = 5, 6.0
    events = drifting_events(corpus, 3000, 30_000, 1, n_intervals=n_intervals, share=0.0, rush=rush)
    busy = busy_by_interval(1, n_intervals)
    assert busy.sum(axis=1).tolist() == [0, 10, 10, 10, 10]
    publishes = events.filter(pc.equal(events["op"], PUBLISH))
    published = region_of(corpus, publishes["lon"].to_numpy(), publishes["lat"].to_numpy())
    subscribed = _regions(corpus, events.filter(pc.equal(events["op"], SUBSCRIBE)))
    region = region_of(corpus, corpus.lon, corpus.lat)
    for interval in range(n_intervals):
        usual = busy[interval][region].mean()
        expected = rush * usual / (1 + (rush - 1) * usual)
        here = slice(6000 * interval, 6000 * (interval + 1))
        assert busy[interval][published[here]].mean() == pytest.approx(expected, abs=0.03)
        here = slice(3000 + 600 * interval, 3000 + 600 * (interval + 1))
        assert busy[interval][subscribed[here]].mean() == pytest.approx(expected, abs=0.06)
    assert busy[1][published[:6000]].mean() == pytest.approx(busy[1][region].mean(), abs=0.03)


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
