"""Matches become records by the ids of their subscriptions: packets, or a JSON object each."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from ps2stream.model.schemas import MATCHES
from ps2stream.roles import packets
from ps2stream.roles.packets import decode
from ps2stream.sinks.match_records import match_records
from ps2stream.sinks.partitions import partitions_of

ROWS = [
    {"subscription_id": f"s{n % 7}", "subscription_seq": n, "publication_id": f"p{n}", "publication_seq": n}
    for n in range(40)
]


def piece(rows: list[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=MATCHES)


@pytest.mark.parametrize("n_partitions", [1, 3])
def test_packets_have_each_match_once_in_the_partition_of_its_subscription(n_partitions: int) -> None:
    found: list[dict[str, object]] = []
    for record in match_records([piece(ROWS[:30]), piece(ROWS[30:])], n_partitions):
        rows = decode(record.value)
        assert record.key is None
        assert set(partitions_of(rows.column("subscription_id"), n_partitions)) == {record.partition}
        found += rows.to_pylist()
    assert sorted(found, key=lambda row: str(row)) == sorted(ROWS, key=lambda row: str(row))


def test_matches_of_a_subscription_stay_in_their_order() -> None:
    records = match_records([piece(ROWS)], 3)
    seqs = [
        row["publication_seq"]
        for record in records
        for row in decode(record.value).to_pylist()
        if row["subscription_id"] == "s2"
    ]
    assert seqs == sorted(seqs)
    assert len(seqs) > 3


def test_many_matches_are_cut_into_packets_that_brokers_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MAX_PACKET_BYTES", 200)
    records = list(match_records([piece(ROWS)], 1))
    assert len(records) > 5
    assert sum(decode(record.value).num_rows for record in records) == len(ROWS)


def test_in_json_a_record_is_a_match_with_the_id_of_its_subscription_as_key() -> None:
    records = list(match_records([piece(ROWS)], 3, "json"))
    assert [json.loads(record.value) for record in records] == ROWS
    assert [(record.key or b"").decode() for record in records] == [row["subscription_id"] for row in ROWS]
    ids = pa.array([str(row["subscription_id"]) for row in ROWS])
    assert [record.partition for record in records] == partitions_of(ids, 3).tolist()


def test_of_nothing_there_are_no_records() -> None:
    assert list(match_records([piece([])], 3)) == list(match_records([], 3)) == []
