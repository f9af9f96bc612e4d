"""A range of a partition is the committed records in it, whoever reads it and however often."""

from __future__ import annotations

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafka.transactions import abort, opened
from ps2stream.errors import BrokerError
from ps2stream.kafka import reading
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.reading import Record, Span, ends_of, first_offset, read
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics


def out(topics: Topics, *values: str, partition: int = 0) -> list[Outgoing]:
    return [Outgoing(topics.publications, partition, value.encode()) for value in values]


def span(topics: Topics, start: int, end: int, partition: int = 0) -> Span:
    return Span(topics.publications, partition, start, end)


def values_in(topics: Topics, wanted: Span) -> list[str]:
    return [(record.value or b"").decode() for records in read(topics.kafka, wanted) for record in records]


def end_of(topics: Topics, partition: int = 0) -> int:
    return Ends(topics.kafka).last(topics.publications, 3)[partition]


def test_every_range_has_its_records_however_it_is_cut(topics: Topics) -> None:
    Sender(topics.kafka).send(out(topics, *map(str, range(20))))
    for start, end in [(0, 20), (0, 1), (19, 20), (7, 13), (5, 5)]:
        assert values_in(topics, span(topics, start, end)) == [str(n) for n in range(start, end)]


def test_keys_values_and_their_absence_are_kept(topics: Topics) -> None:
    wanted = [(None, None), (b"", b""), (b"key", None), (None, b"\x00\xff")]
    Sender(topics.kafka).send([Outgoing(topics.updates, 0, value, key) for key, value in wanted])
    found = list(itertools.chain(*read(topics.kafka, Span(topics.updates, 0, 0, 4))))
    assert found == [Record(offset, *each) for offset, each in enumerate(wanted)]


def test_aborted_records_are_not_read_and_their_gap_stops_nothing(topics: Topics) -> None:
    sender = Sender(topics.kafka)
    sender.send(out(topics, "a"))
    abort(topics.kafka, out(topics, *["no"] * 10_000))
    sender.send(out(topics, "b"))
    opened(topics.kafka, out(topics, "c")).commit_transaction(30)
    end = end_of(topics)
    assert end == 10_005  # with the marks of two transactions
    assert values_in(topics, span(topics, 0, end)) == ["a", "b", "c"]
    assert values_in(topics, span(topics, 1, end - 4)) == [], "all of it aborted"
    assert values_in(topics, span(topics, 5_000, end - 1)) == ["b", "c"]


def test_what_is_not_committed_is_beyond_the_end(topics: Topics) -> None:
    Sender(topics.kafka).send(out(topics, "a"))
    producer = opened(topics.kafka, out(topics, "b"))
    Sender(topics.kafka).send(out(topics, "c"))
    ends = Ends(topics.kafka)
    assert ends.last(topics.publications, 3) == [1, 0, 0]
    assert ends.acknowledged(topics.publications, 3) == [3, 0, 0]
    assert ends_of(topics.kafka, topics.publications, range(3)) == [(0, 1), (0, 0), (0, 0)]
    producer.abort_transaction(30)
    assert values_in(topics, span(topics, 0, 3)) == ["a", "c"]


def test_a_trimmed_range_is_an_error_and_the_first_offset_is_known(topics: Topics) -> None:
    Sender(topics.kafka).send(out(topics, *"abcdef"))
    topics.trim({(topics.publications, 0): 3})
    assert first_offset(topics.kafka, span(topics, 0, 6)) == 3
    with pytest.raises(BrokerError, match=r"partition 0 of .* cannot be read"):
        values_in(topics, span(topics, 1, 6))
    assert values_in(topics, span(topics, 3, 6)) == ["d", "e", "f"]


def test_a_topic_that_does_not_exist_is_an_error(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PATIENCE_S", 1.0)
    with pytest.raises(BrokerError):
        list(read(topics.kafka, Span(f"{topics.prefix}.none", 0, 0, 1)))
    with pytest.raises(BrokerError):
        list(read(topics.kafka, span(topics, 0, 1, partition=9)))


def test_a_reading_that_is_given_up_leaves_nothing_behind(topics: Topics) -> None:
    Sender(topics.kafka).send(out(topics, *map(str, range(100))))
    values_in(topics, span(topics, 0, 1))
    free = reading._free[os.getpid(), topics.kafka]
    before = len(free)
    assert before >= 1
    for _ in range(3):
        cut_off = read(topics.kafka, span(topics, 0, 100))
        next(cut_off)
        del cut_off
    assert len(free) <= before
    assert values_in(topics, span(topics, 40, 42)) == ["40", "41"]


def test_threads_read_at_once_and_share_what_is_free(topics: Topics) -> None:
    for partition in range(3):
        Sender(topics.kafka).send(out(topics, *(f"{partition}-{n}" for n in range(200)), partition=partition))
    barrier = threading.Barrier(4)

    def look(number: int) -> bool:
        barrier.wait()
        for start in range(0, 200, 40):
            found = values_in(topics, span(topics, start, start + 40, number % 3))
            if found != [f"{number % 3}-{n}" for n in range(start, start + 40)]:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(look, range(4)))
    assert len(reading._free[os.getpid(), topics.kafka]) <= 8


def test_a_fork_reads_by_clients_of_its_own(topics: Topics) -> None:
    Sender(topics.kafka).send(out(topics, *"abc"))
    assert values_in(topics, span(topics, 0, 3)) == ["a", "b", "c"]
    child = os.fork()
    if not child:
        os._exit(0 if values_in(topics, span(topics, 0, 3)) == ["a", "b", "c"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert values_in(topics, span(topics, 0, 3)) == ["a", "b", "c"]
