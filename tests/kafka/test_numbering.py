"""Seqs of records are unique, rise from batch to batch, and do not depend on how a batch is cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.kafka.client import Kafka
from ps2stream.kafka.numbering import MAX_ROWS, NumberedSpan, cut, last_seq, numbered, padded
from ps2stream.kafka.reading import Span
from ps2stream.kafka.topics import Topics

TOPICS = Topics(Kafka("nowhere:1"), "t")

#: For each batch how many records it takes of each partition; later ones may know of more partitions.
steps = st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=5), min_size=1, max_size=5)
beginnings = st.lists(st.integers(0, 9), min_size=2, max_size=2)


def batches(begin: list[int], taken: list[list[int]]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    after, found = tuple(begin), []
    for each in taken:
        wide = padded(after, max(len(after), len(each)))
        upto = tuple(map(sum, zip(wide, padded(each, len(wide)), strict=True)))
        found.append((after, upto))
        after = upto
    return found


def seqs_of(place: NumberedSpan) -> list[int]:
    return [place.seq(offset, row) for offset in range(*place.span[2:]) for row in (0, 1, MAX_ROWS - 1)]


def test_seqs_of_many_records_are_those_of_each() -> None:
    place = NumberedSpan(Span("t", 0, 100, 200), 7)
    offsets = [100, 105, 199]
    assert place.seqs(np.array(offsets)).tolist() == [place.seq(offset) for offset in offsets]


@given(beginnings, steps)
def test_seqs_are_unique_and_rise_within_and_between_batches(
    begin: list[int], taken: list[list[int]]
) -> None:
    seqs: list[int] = []
    for after, upto in batches(begin, taken):
        new = [seq for place in numbered(TOPICS, after, upto) for seq in seqs_of(place)]
        assert all(last_seq(after) < seq <= last_seq(upto) for seq in new)
        seqs += new
    assert seqs == sorted(set(seqs))


@given(beginnings, steps, st.integers(1, 7))
def test_seqs_stay_the_same_however_a_span_is_cut(
    begin: list[int], taken: list[list[int]], most: int
) -> None:
    for after, upto in batches(begin, taken):
        for place in numbered(TOPICS, after, upto):
            pieces = cut(place, most)
            assert [seq for piece in pieces for seq in seqs_of(piece)] == seqs_of(place)
            assert all(0 < piece.span.n_offsets <= most for piece in pieces)


@given(beginnings, steps)
def test_a_seq_leads_to_its_record_and_to_no_other(begin: list[int], taken: list[list[int]]) -> None:
    places = [place for batch in batches(begin, taken) for place in numbered(TOPICS, *batch)]
    for place in places:
        for offset in range(*place.span[2:]):
            found = [other for other in places if other.offset(place.seq(offset, 5)) is not None]
            assert found == [place]
            assert place.offset(place.seq(offset, 5)) == offset


def test_updates_come_before_publications() -> None:
    places = numbered(TOPICS, (4,), (6, 2, 3))
    assert [(place.span.topic, place.span.partition) for place in places] == [
        ("t.updates", 0),
        ("t.publications", 0),
        ("t.publications", 1),
    ]
    assert [place.first_number for place in places] == [5, 7, 9]
