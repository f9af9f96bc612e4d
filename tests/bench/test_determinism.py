"""The same seed gives the same events and the same matches, whatever engine runs them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from ps2stream_bench.engines import Meter, Stream, batches_of, drifting_stream_of, loaded, stream_of
from ps2stream_bench.peers.catalogue import Setup, open_peer
from ps2stream_bench.workloads import COUNTRIES, KINDS, Country, Kind, corpus_for

Pairs = set[tuple[int, int]]


def _stream(country: Country, kind: Kind, seed: int) -> Stream:
    return stream_of(corpus_for(country, 500, seed), kind, 2_000, 2_000, seed)


def _matches(stream: Stream, *, workers: int, partitioner: str, batch: int) -> Pairs:
    settings = stream.settings(n_workers=workers, n_dispatchers=2, partitioner=partitioner)
    meter = Meter(loaded(stream.plan(settings), settings, stream.loading))
    found: Pairs = set()
    for events in batches_of(stream.mixed, batch):
        matches = meter.process(events)
        pairs = list(
            zip(*(matches[name].to_pylist() for name in ("subscription_seq", "publication_seq")), strict=True)
        )
        assert found.isdisjoint(pairs)
        found.update(pairs)
    return found


@pytest.mark.parametrize("country", COUNTRIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_stream(country: Country, kind: Kind) -> None:
    assert _stream(country, kind, 1).events.equals(_stream(country, kind, 1).events)
    assert not _stream(country, kind, 1).events.equals(_stream(country, kind, 2).events)


def test_a_drifting_stream_is_the_same_for_the_same_seed() -> None:
    corpus = corpus_for("uk", 2_000, 3)
    streams = [drifting_stream_of(corpus, 300, 900, seed, n_intervals=3) for seed in (4, 4, 5)]
    assert streams[0].events.equals(streams[1].events)
    assert not streams[0].events.equals(streams[2].events)


def test_matches_do_not_depend_on_how_the_inline_engine_is_set_up() -> None:
    stream = _stream("uk", "q3", 1)
    first = _matches(stream, workers=1, partitioner="hybrid", batch=1_000)
    assert len(first) > 100
    assert _matches(stream, workers=8, partitioner="metric", batch=100) == first
    assert _matches(stream, workers=3, partitioner="kd-tree", batch=37) == first


def test_both_engines_give_the_same_matches(spark: SparkSession) -> None:
    stream = _stream("us", "q1", 2)
    table = stream.events.schema.empty_table().from_batches([stream.events])
    subscribes, publishes = table.slice(0, stream.n_live), table.slice(stream.n_live)
    publishes = publishes.filter([op == "publish" for op in publishes["op"].to_pylist()])
    found = {}
    for name in ("PS2Stream inline", "PS2Stream microbatch"):
        peer = open_peer(name, Setup(lambda: spark, stream.stop_words, 2, publishes))
        try:
            peer.load(subscribes)
            found[name] = set(map(tuple, (row.values() for row in peer.match(publishes).to_pylist())))
        finally:
            peer.close()
    inline, microbatch = found.values()
    assert inline == microbatch
    assert len(inline) > 50
