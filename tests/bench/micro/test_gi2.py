"""Both contenders of the micro-benchmark find what the oracle finds."""

import pytest

from ps2stream.arrays import frozen
from ps2stream.matching.contract import Found
from ps2stream.model.space import WORLD, Grid
from ps2stream.testing import oracle
from ps2stream_bench.micro.gi2 import BEFORE_ALL, Contender
from ps2stream_bench.workloads import Kind, compile_arrays, corpus_for, publish_events, subscribe_events

pytestmark = pytest.mark.kernel

COUNTERS = Grid.over(WORLD, 3)
contenders = pytest.mark.parametrize("contender", [Contender("gi2", 9, 4), Contender("naive", 9, 0)], ids=str)


def _pairs(found: Found, first_seq: int) -> list[tuple[int, int]]:
    rows = zip(found.subscription.tolist(), found.publication.tolist(), strict=True)
    return sorted((subscription, first_seq + row) for subscription, row in rows)


@contenders
@pytest.mark.parametrize("kind", ["q1", "q2"])
def test_a_contender_finds_what_the_oracle_finds(contender: Contender, kind: Kind) -> None:
    corpus = corpus_for("us", 60, 3)
    subscribes, publishes = subscribe_events(corpus, kind, 400, 1), publish_events(corpus, 200, 401, 2)
    stop_words = corpus.tokenizer().stop_words
    events = [oracle.EventRow(**row) for table in (subscribes, publishes) for row in table.to_pylist()]
    expected = sorted(
        (match.subscription_seq, match.publication_seq) for match in oracle.run(events, stop_words).matches
    )
    subs, probes = compile_arrays(corpus, subscribes, publishes)
    index = contender.build(COUNTERS)
    index.insert(subs)
    assert len(expected) > 20
    assert _pairs(index.probe(probes, BEFORE_ALL), 401) == expected


@contenders
def test_a_contender_forgets_what_ended(contender: Contender) -> None:
    corpus = corpus_for("us", 60, 3)
    subs, probes = compile_arrays(
        corpus, subscribe_events(corpus, "q1", 400, 1), publish_events(corpus, 200, 401, 2)
    )
    index = contender.build(COUNTERS)
    index.insert(subs)
    before = _pairs(index.probe(probes, BEFORE_ALL), 401)
    ended = subs.seq_from[::2]
    assert index.end(frozen(ended), frozen(ended + 1)) == len(ended)
    for horizon in (BEFORE_ALL, 400, 400):
        left = _pairs(index.probe(probes, horizon), 401)
        assert left == [(seq, row) for seq, row in before if seq % 2 == 0]
