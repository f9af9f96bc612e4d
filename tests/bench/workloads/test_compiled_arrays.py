"""Events compile to the arrays that kernels take."""

import numpy as np

from ps2stream_bench.workloads import Corpus, compile_arrays, publish_events, subscribe_events


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
