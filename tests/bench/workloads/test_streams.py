"""Streams mix publications and updates as the paper does, and drift as they say."""

import numpy as np
import pyarrow.compute as pc
import pytest

from bench.workloads.reading import ranks_of, regions_of, sides_km_of
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing.oracle import run
from ps2stream_bench.workloads import (
    Corpus,
    Shape,
    busy_by_interval,
    drifting_events,
    kinds_by_interval,
    mixed_events,
    publish_events,
    region_of,
)


def test_publications_are_those_of_the_corpus(corpus: Corpus) -> None:
    events = publish_events(corpus, 500, 301, 2)
    assert events.schema.equals(EVENTS)
    assert events["seq"].to_pylist() == list(range(301, 801))
    places = {
        text: (lon, lat)
        for text, lon, lat in zip(corpus.texts.to_pylist(), corpus.lon, corpus.lat, strict=True)
    }
    long = [row for row in events.to_pylist() if len(row["text"].split()) > 4]
    assert len(long) > 300
    assert all(places[row["text"]] == (row["lon"], row["lat"]) for row in long)


def test_the_mix_is_five_to_one_and_keeps_as_many_alive(corpus: Corpus) -> None:
    events = mixed_events(corpus, "q1", 200, 1000, 5)
    ops = events["op"].to_pylist()
    assert events.schema.equals(EVENTS)
    assert events["seq"].to_pylist() == list(range(1, 1401))
    assert (ops.count(PUBLISH), ops.count(SUBSCRIBE), ops.count(UNSUBSCRIBE)) == (1000, 300, 100)
    assert ops[:200] == [SUBSCRIBE] * 200
    assert not run(events, corpus.tokenizer().stop_words).rejected


def test_a_shape_holds_for_all_subscriptions_of_a_stream(corpus: Corpus) -> None:
    events = mixed_events(corpus, "q3", 50, 500, 5, shape=Shape(side_km=(7.0, 7.0)))
    assert sides_km_of(events.filter(pc.equal(events["op"], SUBSCRIBE))) == pytest.approx(np.full(100, 7.0))


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
    regions, sides = regions_of(corpus, subscribes), sides_km_of(subscribes)
    rarest = np.array([max(ranks) for ranks in ranks_of(corpus, subscribes)])
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
    subscribed = regions_of(corpus, events.filter(pc.equal(events["op"], SUBSCRIBE)))
    region = region_of(corpus, corpus.lon, corpus.lat)
    for interval in range(n_intervals):
        usual = busy[interval][region].mean()
        expected = rush * usual / (1 + (rush - 1) * usual)
        here = slice(6000 * interval, 6000 * (interval + 1))
        assert busy[interval][published[here]].mean() == pytest.approx(expected, abs=0.03)
        here = slice(3000 + 600 * interval, 3000 + 600 * (interval + 1))
        assert busy[interval][subscribed[here]].mean() == pytest.approx(expected, abs=0.06)
    assert busy[1][published[:6000]].mean() == pytest.approx(busy[1][region].mean(), abs=0.03)


def test_publications_lie_anywhere_and_not_at_the_centres_of_subscriptions(corpus: Corpus) -> None:
    events = mixed_events(corpus, "q1", 500, 400, 3)
    subscribes = events.filter(pc.equal(events["op"], SUBSCRIBE)).slice(0, 400)
    publishes = events.filter(pc.equal(events["op"], PUBLISH))
    centre = (subscribes["min_lat"].to_numpy() + subscribes["max_lat"].to_numpy()) / 2
    apart = np.abs(centre - publishes["lat"].to_numpy())
    assert np.mean(apart < 1e-9) < 0.05
    assert abs(np.corrcoef(centre, publishes["lat"].to_numpy())[0, 1]) < 0.2
