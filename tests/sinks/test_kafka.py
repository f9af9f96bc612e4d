"""Matches as records: by subscription, in packets that brokers take or as JSON with a key."""

from __future__ import annotations

import json
import pickle

import pyarrow as pa
import pytest

from kafka.produced import kept
from ps2stream.errors import StateError
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import MATCHES
from ps2stream.roles.packets import MAX_PACKET_BYTES, decode
from ps2stream.sinks.kafka import KafkaSink, _Outgoing
from ps2stream.sinks.match_records import MatchFormat
from ps2stream.sinks.partitions import partitions_of


def matches(n: int, id_bytes: int = 3) -> pa.RecordBatch:
    rows = [
        {
            "subscription_id": f"s{i % 7}".ljust(id_bytes, "x"),
            "subscription_seq": i,
            "publication_id": f"p{i}ü",
            "publication_seq": 2 * i,
        }
        for i in range(n)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=MATCHES)


def sink_of(match_format: MatchFormat = "arrow") -> KafkaSink:
    return KafkaSink(Topics(Kafka("nowhere:1"), "t"), 3, match_format)


@pytest.mark.parametrize("id_bytes", [3, 1_000])
def test_packets_have_all_matches_each_in_the_partition_of_its_subscription(id_bytes: int) -> None:
    pieces = [matches(4_000, id_bytes), matches(5), matches(0)]
    found = []
    for record in _Outgoing(sink_of(), pieces):
        assert record.value is not None
        assert len(record.value) < 1_000_000
        packet = decode(record.value)
        assert set(partitions_of(packet.column("subscription_id"), 3).tolist()) == {record.partition}
        found += packet.to_pylist()
    wanted = [row for piece in pieces for row in piece.to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_ids_of_very_different_lengths_still_fit() -> None:
    long = matches(900, 1_000).slice(0, 900)
    mixed = pa.concat_batches([matches(20_000), long])
    sizes = [decode(record.value or b"").nbytes for record in _Outgoing(sink_of(), [mixed])]
    assert max(sizes) <= MAX_PACKET_BYTES


def test_in_json_each_match_has_the_key_of_its_subscription() -> None:
    records = list(_Outgoing(sink_of("json"), [matches(20)]))
    assert [json.loads(record.value or b"") for record in records] == matches(20).to_pylist()
    assert [record.key for record in records] == [f"s{i % 7}x".encode() for i in range(20)]


def test_records_are_the_same_when_they_are_asked_for_again() -> None:
    records = _Outgoing(sink_of(), [matches(500)])
    assert list(records) == list(records)


def test_a_sink_may_be_sent_and_needs_its_topics(topics: Topics) -> None:
    sink = KafkaSink.of(topics)
    assert sink.n_partitions == 3
    assert pickle.loads(pickle.dumps(sink)) == sink
    with pytest.raises(StateError, match=f"there is no topic {topics.prefix}.none.matches"):
        KafkaSink.of(Topics(topics.kafka, f"{topics.prefix}.none"))


def test_many_matches_of_a_batch_arrive(topics: Topics) -> None:
    sink = KafkaSink.of(topics)
    assert sink.write_matches(1, 0, [matches(30_000, 200)]) == 30_000
    assert len(kept(topics, topics.matches)) == 30_000
