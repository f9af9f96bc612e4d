"""Entries come back as they were written, in however many parts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.registry.segments import DROP, END, SEGMENT
from ps2stream.resident.entries import (
    Entry,
    EntryKind,
    EntryReader,
    PlanPlace,
    first_entry,
    to_bytes,
    to_records,
)
from ps2stream.roles import packets
from ps2stream.roles.packets import encode
from ps2stream.routing.routing import Routing

seqs = st.integers(BEFORE_ALL_SEQS, (1 << 63) - 1)
places = st.builds(PlanPlace, st.integers(0, 1000), st.text(max_size=20))
rows = st.lists(
    st.fixed_dictionaries(
        {
            "change": st.sampled_from([END, DROP]),
            "seq_from": st.integers(0, 1 << 60),
            "seq_to": st.integers(0, 1 << 60),
            "id": st.text(max_size=50),
            "clauses": st.lists(st.lists(st.integers(0, (1 << 64) - 1), max_size=3), max_size=3),
            "workers": st.lists(st.integers(0, 9), max_size=3),
        }
    ),
    max_size=30,
)
entries = st.builds(
    Entry,
    st.sampled_from(EntryKind),
    seqs,
    st.builds(Routing, places, st.none() | places, seqs),
    seqs,
    st.integers(0, 99),
    rows.map(lambda each: pa.RecordBatch.from_pylist(each, schema=SEGMENT)),
    st.text(max_size=10),
    seqs,
)


@given(entries, st.sampled_from([1, 300, 1 << 20]))
def test_an_entry_comes_back_with_its_last_part_and_not_before(entry: Entry, most_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packets, "MAX_PACKET_BYTES", most_bytes)
        records = list(to_records(entry))
    reader = EntryReader()
    *none, whole = [reader.take(record) for record in records]
    assert none == [None] * len(none)
    assert whole == entry
    assert most_bytes > 1 or len(records) == max(1, entry.segment.num_rows)
    assert reader.take(to_bytes(entry)) == entry


def test_a_log_begins_with_a_snapshot_of_nothing() -> None:
    entry = first_entry(PlanPlace(1, "plan"))
    assert (entry.kind, entry.segment.num_rows) == (EntryKind.SNAPSHOT, 0)
    assert entry.upto == 0
    assert entry.older_generation is None


def test_the_older_part_of_a_routing_is_of_the_generation_before() -> None:
    routing = Routing(PlanPlace(2, "b"), PlanPlace(1, "a"), 10)
    assert Entry(EntryKind.SWITCH, 12, routing, generation=7).older_generation == 6


@pytest.mark.parametrize("record", [b"", b"no packet", encode(empty(SEGMENT))])
def test_what_is_no_entry_is_an_error(record: bytes) -> None:
    with pytest.raises(StateError, match="an entry of the log cannot be read"):
        EntryReader().take(record)
