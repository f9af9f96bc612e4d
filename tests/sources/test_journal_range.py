"""Ranges cut a journal into parts that are all of it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.streams import batches_of, events_of, publish, random_stream, seqs_of
from ps2stream.journal import Journal
from ps2stream.model.events import split
from ps2stream.sources.journal_range import journal_ranges
from sources.test_contract import read


@given(st.integers(0, 1000), st.sampled_from([1, 13, 60]), st.integers(1, 9))
@settings(max_examples=10, deadline=None)
def test_parts_of_a_journal_are_all_of_it_in_order(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int, n_parts: int
) -> None:
    directory = tmp_path_factory.mktemp("journal")
    events = random_stream(60, seed)
    with Journal.open(directory, create=True, durable=False) as journal:
        for batch in batches_of(events, size):
            journal.append_ordered(batch)
        upto = journal.last().position
    ranges = journal_ranges(directory, 0, upto, n_parts)
    assert 1 <= len(ranges) <= n_parts
    publications, updates = split(events)
    assert read(ranges) == (seqs_of(publications), seqs_of(updates), [])
    assert sum(each.n_publications for each in ranges) == publications.num_rows
    assert sum(each.n_updates for each in ranges) == updates.num_rows
    assert max(each.last_seq for each in ranges) == seqs_of(events)[-1]


def test_forgetting_a_range_prunes_it_and_nothing_behind_it(tmp_path: Path) -> None:
    with Journal.open(tmp_path, create=True, durable=False) as journal:
        for number in range(5):
            journal.append(events_of(publish(0, f"p{number}")))
        for each in journal_ranges(tmp_path, 0, 3, 2):
            each.forget()
        assert journal.oldest() == 4
    assert len(read(journal_ranges(tmp_path, 3, 5, 1))[0]) == 2


def test_a_damaged_packet_is_a_rejected_record_and_the_others_are_read(tmp_path: Path) -> None:
    with Journal.open(tmp_path, create=True, durable=False) as journal:
        for number in range(3):
            journal.append(events_of(publish(0, f"p{number}")))
    with contextlib.closing(sqlite3.connect(tmp_path / "journal.sqlite")) as database, database:
        database.execute("UPDATE packets SET publications_crc32 = publications_crc32 + 1 WHERE position = 2")
    publications, updates, reasons = read(journal_ranges(tmp_path, 0, 3, 1))
    assert (publications, updates) == ([1, 3], [])
    assert reasons == ["packet 2 of the journal is damaged: wrong checksum of publications"]
