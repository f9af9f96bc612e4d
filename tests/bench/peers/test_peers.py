"""Every peer that can run here finds what the definition of a match says, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ps2stream.matcher import event_table
from ps2stream.model.publications import Publication
from ps2stream.model.space import Region
from ps2stream.model.subscriptions import Subscription
from ps2stream.testing import oracle
from ps2stream_bench.peers.catalogue import NAMES, Setup, open_peer, unavailable
from ps2stream_bench.peers.contract import PAIRS, Peer
from ps2stream_bench.workloads import (
    KINDS,
    Corpus,
    corpus_of,
    publish_events,
    subscribe_events,
)

N_SUBSCRIPTIONS, N_PUBLICATIONS = 200, 300

BOX = Region(10.0, 50.0, 10.3, 50.1)
EDGE_SUBSCRIPTIONS = [
    Subscription("box", "fire", BOX),
    Subscription("line", "fire", Region(10.0, 50.0, 10.3, 50.0)),
    Subscription("point", "fire", Region(10.3, 50.1, 10.3, 50.1)),
    Subscription("crossing", "fire", Region(170.0, 50.0, -170.0, 51.0)),
    Subscription("world", "fire AND smoke", Region(-180.0, -90.0, 180.0, 90.0)),
    Subscription("twice", "fire AND FIRE AND fire", BOX),
    Subscription("either", "fire OR smoke OR (rain AND (wind OR hail))", BOX),
    Subscription("dashed", "covid-19", BOX),
    Subscription("null", "null", BOX),
    Subscription("stopped", "(the AND rain) OR hail", BOX),
]
EDGE_PUBLICATIONS = [
    *(Publication(f"corner {lon} {lat}", "fire", lat, lon) for lon in (10.0, 10.3) for lat in (50.0, 50.1)),
    Publication("just outside", "fire", 50.1, float(np.nextafter(10.3, 11.0))),
    Publication("far north", "fire smoke", 90.0, 0.0),
    Publication("date line", "fire smoke", 50.5, 180.0),
    Publication("date line, other side", "fire", 50.5, -180.0),
    Publication("beyond the region", "fire", 50.5, -169.9),
    Publication("again and again", "Fire fire, FIRE! smoke smoke", 50.05, 10.1),
    Publication("two ways", "fire smoke rain hail", 50.05, 10.1),
    Publication("not enough", "rain", 50.05, 10.1),
    Publication("two terms", "COVID 19", 50.05, 10.1),
    Publication("null", "null", 50.05, 10.1),
    Publication("no text", "", 50.05, 10.1),
    Publication("no terms", "... !", 50.05, 10.1),
    Publication("only stop words", "the The", 50.05, 10.1),
]
QUIET = [Publication("q", "nobody asks", 50.05, 10.1), Publication("r", "fire", -40.0, 3.0)]


class Workload(NamedTuple):
    subscriptions: pa.Table
    publications: pa.Table
    stop_words: tuple[str, ...]


@pytest.fixture(scope="module")
def workload() -> Workload:
    """Make Q1, Q2 and Q3 subscriptions where publications are dense, and edge cases after both."""
    corpus = dense_corpus()
    kinds = [subscribe_events(corpus, kind, N_SUBSCRIPTIONS, seed=4) for kind in KINDS]
    subscriptions = numbered([*kinds, event_table(EDGE_SUBSCRIPTIONS)], 1)
    first = subscriptions.num_rows + 1
    drawn = publish_events(corpus, N_PUBLICATIONS, first, seed=5)
    publications = numbered([drawn, event_table(EDGE_PUBLICATIONS)], first)
    return Workload(subscriptions, publications, ("the", *corpus.stop_words))


def dense_corpus() -> Corpus:
    rng = np.random.default_rng(3)
    lon, lat = rng.uniform(-100.0, -99.4, 1_000), rng.uniform(40.0, 40.6, 1_000)
    words = np.minimum(rng.zipf(1.2, (1_000, 14)), 250)
    return corpus_of(lon, lat, pa.array([" ".join(f"w{word}" for word in row) for row in words]))


def numbered(tables: list[pa.Table], first_seq: int) -> pa.Table:
    """Put tables one after the other, with seqs and ids of their own."""
    events = pa.concat_tables(tables).combine_chunks()
    seqs = pa.array(range(first_seq, first_seq + events.num_rows), pa.int64())
    return events.set_column(0, "seq", seqs).set_column(2, "id", seqs.cast(pa.string()))


@pytest.fixture(scope="module", params=NAMES)
def peer(request: pytest.FixtureRequest, workload: Workload) -> Iterator[Peer]:
    """Load the subscriptions into one peer after the other."""
    reason = unavailable(request.param)
    if reason:
        pytest.skip(reason)

    def session() -> SparkSession:
        spark: SparkSession = request.getfixturevalue("spark")
        return spark

    opened = open_peer(request.param, Setup(session, workload.stop_words, sample=workload.publications))
    try:
        opened.load(workload.subscriptions)
        yield opened
    finally:
        opened.close()
        opened.close()


def pairs_in(found: pa.Table) -> list[tuple[int, int]]:
    assert found.schema == PAIRS
    return sorted(
        zip(found["publication_seq"].to_pylist(), found["subscription_seq"].to_pylist(), strict=True)
    )


def test_a_peer_finds_every_pair_once(peer: Peer, workload: Workload) -> None:
    events = pa.concat_tables([workload.subscriptions, workload.publications])
    outcome = oracle.run(events, workload.stop_words)
    wanted = sorted((match.publication_seq, match.subscription_seq) for match in outcome.matches)
    assert outcome.rejected == []
    assert len(wanted) > 300
    n = workload.publications.num_rows // 2
    first, second = workload.publications.slice(0, n), workload.publications.slice(n)
    found = pairs_in(peer.match(first))
    peer.rest()
    peer.wake()
    assert found + pairs_in(peer.match(second)) == wanted


def test_a_peer_says_that_nobody_is_told(peer: Peer, workload: Workload) -> None:
    after = workload.subscriptions.num_rows + workload.publications.num_rows + 1
    unheard = numbered([event_table([Publication("p", "fire smoke", -40.0, 3.0), *QUIET])], after)
    assert pairs_in(peer.match(unheard)) == [(after, seq_of("world", workload))]
    silent = numbered([event_table(QUIET)], after + 10)
    assert pairs_in(peer.match(silent)) == []


def seq_of(subscription: str, workload: Workload) -> int:
    row = [each.id for each in EDGE_SUBSCRIPTIONS].index(subscription)
    n_before: int = workload.subscriptions.num_rows - len(EDGE_SUBSCRIPTIONS)
    return n_before + row + 1


def test_a_peer_tells_how_large_its_index_is_or_that_it_cannot(peer: Peer, workload: Workload) -> None:
    size = peer.index_bytes()
    can_tell = peer.name not in ("shapely STRtree", "Spark SQL")
    assert (size is not None) == can_tell
    assert size is None or size > 40 * workload.subscriptions.num_rows


def test_a_peer_has_the_name_that_it_is_asked_for_by(peer: Peer, request: pytest.FixtureRequest) -> None:
    assert f"[{peer.name}]" in request.node.name
