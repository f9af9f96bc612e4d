"""Matches of topics are read once each, whichever form they have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ps2stream.deployment.kafka_match_reader import KafkaMatchReader
from ps2stream.deployment.match_reader import Wanted
from ps2stream.errors import StateError
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics
from ps2stream.model.schemas import MATCHES
from ps2stream.sinks.kafka import KafkaSink

ALL = Wanted()


def matches(*seqs: int) -> list[pa.RecordBatch]:
    rows = [
        {
            "subscription_id": f"s{seq}",
            "subscription_seq": 1,
            "publication_id": f"p{seq}",
            "publication_seq": seq,
        }
        for seq in seqs
    ]
    return [pa.RecordBatch.from_pylist(rows, schema=MATCHES)]


def seqs_of(reader: KafkaMatchReader, wanted: Wanted = ALL, n: int = 0) -> list[int]:
    """Read until there are as many as are known to be committed: readers see them a little later."""
    found: list[int] = []
    for batch in reader.follow(wanted, timeout_s=None if n else 0.0, poll_s=0.01):
        found += batch.column("publication_seq").to_pylist()
        if n and len(found) >= n:
            break
    return found


def test_matches_come_once_and_in_order_whatever_their_form(topics: Topics) -> None:
    reader = KafkaMatchReader(topics)
    assert seqs_of(reader) == []
    KafkaSink.of(topics).write_matches(0, 0, matches(9, 4, 7, 1))
    KafkaSink.of(topics, "json").write_matches(0, 1, matches(8, 2))
    assert sorted(seqs_of(reader, n=6)) == [1, 2, 4, 7, 8, 9]
    assert seqs_of(reader) == []
    assert seqs_of(KafkaMatchReader(topics)) == [1, 2, 4, 7, 8, 9]
    assert seqs_of(KafkaMatchReader(topics), Wanted("s4")) == [4]
    assert seqs_of(KafkaMatchReader(topics), Wanted(since=7)) == [7, 8, 9]


def test_what_was_there_may_be_left_out_and_what_was_trimmed_is(topics: Topics) -> None:
    sink, late = KafkaSink.of(topics), KafkaMatchReader(topics)
    sink.write_matches(0, 0, matches(1, 2, 3))
    assert sorted(seqs_of(KafkaMatchReader(topics), n=3)) == [1, 2, 3]
    late.skip()
    sink.write_matches(1, 0, matches(4))
    assert seqs_of(late, n=1) == [4]
    sink.clear()
    assert seqs_of(KafkaMatchReader(topics)) == []


@pytest.mark.parametrize("value", [b"no", b"{", b'{"publication_seq":"x"}', b""])
def test_a_record_that_is_no_match_is_named(topics: Topics, value: bytes) -> None:
    Sender(topics.kafka).send([Outgoing(topics.matches, 1, value)])
    with pytest.raises(StateError, match=f"{topics.matches} cannot be read"):
        seqs_of(KafkaMatchReader(topics))
