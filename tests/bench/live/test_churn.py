"""Subscriptions come and go, and as many live later as before."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from ps2stream.kafka.client import Kafka
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.roles.packets import decode
from ps2stream_bench.live.churn import Churn

TOPICS = Topics(Kafka("nowhere:1"), "churn")


def events() -> pa.RecordBatch:
    publication = {"op": PUBLISH, "lat": 1.0, "lon": 2.0, "text": "fire"}
    region = {"min_lon": 0.0, "min_lat": 0.0, "max_lon": 5.0, "max_lat": 5.0}
    subscription = {"op": SUBSCRIBE, "expression": "fire", **region}
    rows = [{"seq": n, "id": str(n), **(subscription if n % 6 == 0 else publication)} for n in range(60)]
    return pa.RecordBatch.from_pylist(rows, schema=EVENTS)


@pytest.mark.parametrize("tuples_per_s", [12_000, 12_600])  # an even and an odd number of updates a tick
def test_whoever_ends_has_begun_and_not_ended_before(tuples_per_s: float) -> None:
    churn, live = Churn(TOPICS, events(), tuples_per_s, 2, n_kept=50), set[str]()
    for records in itertools.islice(churn.ticks(), 200):
        for row in decode(records[1].value or b"").to_pylist():
            if row["op"] == SUBSCRIBE:
                assert row["id"] not in live
                assert row["expression"] == "fire"
                live.add(row["id"])
            else:
                assert row["op"] == UNSUBSCRIBE
                live.remove(row["id"])
    assert 50 <= len(live) <= 80


def test_a_tick_has_its_share_of_the_rate_five_publications_to_an_update() -> None:
    churn = Churn(TOPICS, events(), 12_000, 2, n_kept=50)
    ticks = list(itertools.islice(churn.ticks(), 4))
    assert [records[0].partition for records in ticks] == [0, 1, 0, 1]
    sizes = {tuple(decode(each.value or b"").num_rows for each in records) for records in ticks}
    assert sizes == {(100, 20)}
    assert churn.n_events_of_tick == 120
