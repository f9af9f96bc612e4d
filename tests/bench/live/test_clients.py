"""The first delivery of a publication counts, whoever else was delivered."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.model.schemas import MATCHES
from ps2stream_bench.live.clients import Observer, _Seen, delivered
from ps2stream_bench.live.quantiles import quantiles_ms
from ps2stream_bench.live.schedule import Schedule


def matches(*publications: str) -> pa.RecordBatch:
    rows = [
        {"subscription_id": "s", "subscription_seq": 1, "publication_id": id, "publication_seq": 2}
        for id in publications
    ]
    return pa.RecordBatch.from_pylist(rows, schema=MATCHES)


def test_the_first_delivery_counts_and_others_are_left_out() -> None:
    schedule = Schedule("p1", [], np.zeros(3), 3)
    found = delivered(schedule, [(5.0, matches("p1-2", "p11-0")), (6.0, matches("p1-2", "p1-0", "other"))])
    assert found.first_at[0] == 6.0
    assert np.isnan(found.first_at[1])
    assert found.first_at[2] == 5.0
    assert (found.n_matches, found.last_at) == (3, 6.0)


def test_quantiles_are_latencies_that_were_met() -> None:
    row = quantiles_ms(np.array([0.010] * 98 + [0.2, 2.0]))
    assert row["latency_p50_ms"] == 10.0
    assert row["latency_p99_ms"] == 200.0
    assert row["latency_max_ms"] == 2000.0
    assert (row["share_over_100_ms"], row["share_over_1_s"]) == (0.02, 0.01)


class Counted(bytes):
    """What was delivered; it counts who looks into it."""

    n_looks = 0

    def __contains__(self, wanted: object) -> bool:
        Counted.n_looks += 1
        return super().__contains__(wanted)  # type: ignore[operator]


def test_whoever_waits_for_a_delivery_looks_at_each_record_once() -> None:
    observer = Observer.__new__(Observer)
    observer._failure = None
    observer.drop()
    observer._seen += [_Seen(1.0, Counted(b"a")), _Seen(2.0, Counted(b"b"))]
    assert not observer.has("c")
    assert not observer.has("c")
    assert Counted.n_looks == 2
    observer._seen.append(_Seen(3.0, Counted(b"c")))
    assert [observer.has("c"), observer.has("c"), observer.has("a", 1)] == [True, True, False]
    observer.drop()
    assert not observer.has("c")
