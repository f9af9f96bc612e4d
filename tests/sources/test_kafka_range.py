"""A range of a partition as a source: it says what it has, and what was deleted before."""

from __future__ import annotations

from ps2stream.kafka.ends import Ends
from ps2stream.kafka.numbering import NumberedSpan
from ps2stream.kafka.reading import Span
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics
from ps2stream.sources.kafka_range import KafkaRange


def range_of(topics: Topics, topic: str, start: int, end: int) -> KafkaRange:
    return KafkaRange(topics, NumberedSpan(Span(topic, 0, start, end), 11), 1_000, unseen_at=5.0)


def ids_of(source: KafkaRange) -> list[str]:
    return [id for part in source.publications() for id in part.publications.column("id").to_pylist()]


def test_a_range_has_updates_or_publications(topics: Topics) -> None:
    Sender(topics.kafka).send(
        [Outgoing(topics.updates, 0, None, b"s"), Outgoing(topics.publications, 0, b"{}")]
    )
    updates, publications = (
        range_of(topics, topics.updates, 0, 1),
        range_of(topics, topics.publications, 0, 1),
    )
    assert (updates.n_updates, updates.n_publications) == (1, 0)
    assert (publications.n_updates, publications.n_publications) == (0, 1)
    assert [part.updates.column("id").to_pylist() for part in updates.updates()] == [["s"]]
    assert not list(updates.publications())
    assert not list(publications.updates())
    assert ids_of(publications) == ["0-0"]
    assert updates.waits(7.5) == [(2.5, 1)]
    assert updates.waits(1.0) == [(0.0, 1)]


def test_what_was_trimmed_is_rejected_once_and_the_rest_is_read(topics: Topics) -> None:
    Sender(topics.kafka).send([Outgoing(topics.publications, 0, b"{}") for _ in range(6)])
    topics.trim({(topics.publications, 0): 4})
    for (start, end), ids, lost in [
        ((0, 6), ["0-4", "0-5"], "records 0 to 3 of"),
        ((1, 3), [], "records 1 to 2 of"),
        ((4, 6), ["0-4", "0-5"], None),
    ]:
        source = range_of(topics, topics.publications, start, end)
        assert ids_of(source) == ids
        rejected = [row for part in source.publications() for row in part.rejected.to_pylist()]
        assert [lost in row["reason"] for row in rejected] == ([True] if lost else [])
        assert [row["seq"] for row in rejected] == ([11 << 16] if lost else [])


def test_forgetting_deletes_a_range_and_all_before_it(topics: Topics) -> None:
    Sender(topics.kafka).send([Outgoing(topics.publications, 0, b"{}") for _ in range(6)])
    range_of(topics, topics.publications, 2, 4).forget()
    assert Ends(topics.kafka).first(topics.publications, 3) == [4, 0, 0]
