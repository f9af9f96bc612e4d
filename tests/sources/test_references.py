"""A reference reads back what it stands for, from a journal or from spooled files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.streams import batches_of, events_of, publish, random_stream, seqs_of, subscribe, unsubscribe
from ps2stream.errors import SchemaError
from ps2stream.journal import Journal
from ps2stream.model.events import split
from ps2stream.sources.references import Reference, journal_references, prune, spool


def _read(references: list[Reference]) -> tuple[list[int], list[int], list[str]]:
    """Return the seqs of publications and of updates, and the reasons of what was rejected."""
    parts = [part for reference in references for part in reference.publications()]
    updates = [batch for reference in references for batch in reference.updates()]
    return (
        [seq for part in parts for seq in seqs_of(part.publications)],
        [seq for batch in updates for seq in seqs_of(batch)],
        [reason for part in parts for reason in part.rejected.column("reason").to_pylist()],
    )


def test_spooled_events_are_read_back_and_late_ones_turned_down(tmp_path: Path) -> None:
    events = [
        events_of(publish(12, "p"), subscribe(11, "a")),
        events_of(unsubscribe(15, "a"), publish(9, "late"), publish(13, "q")),
        events_of(),
    ]
    reference = spool(events, tmp_path / "part", high_water=10)
    assert (reference.n_publications, reference.n_updates, reference.last_seq) == (2, 2, 15)
    publications, updates, reasons = _read([reference])
    assert publications == [12, 13]
    assert updates == [11, 15]
    assert reasons == ["seq must be above 10, the last of the batch before; got 9"]


def test_a_spool_of_nothing_keeps_the_mark(tmp_path: Path) -> None:
    reference = spool([], tmp_path / "part", high_water=10)
    assert (reference.n_publications, reference.n_updates, reference.last_seq) == (0, 0, 10)
    assert _read([reference]) == ([], [], [])


def test_spooling_events_of_another_schema_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="column 'seq'"):
        spool([pa.RecordBatch.from_pylist([{"x": 1}])], tmp_path / "part", high_water=0)


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
    references = journal_references(directory, 0, upto, n_parts)
    assert 1 <= len(references) <= n_parts
    publications, updates = split(events)
    assert _read(references) == (seqs_of(publications), seqs_of(updates), [])
    assert sum(reference.n_publications for reference in references) == publications.num_rows
    assert sum(reference.n_updates for reference in references) == updates.num_rows
    assert max(reference.last_seq for reference in references) == seqs_of(events)[-1]


def test_pruning_drops_what_references_stand_for_and_nothing_behind_it(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal", create=True, durable=False) as journal:
        for number in range(5):
            journal.append(events_of(publish(0, f"p{number}")))
        references = journal_references(tmp_path / "journal", 0, 3, 2)
        spooled = spool([events_of(publish(1, "p"))], tmp_path / "part", high_water=0)
        prune([*references, spooled])
        assert journal.oldest() == 4
    rest = journal_references(tmp_path / "journal", 3, 5, 1)
    assert len(_read(rest)[0]) == 2
    assert len(_read([spooled])[0]) == 1
