"""Every source says how many events it has, and reads the same ones wherever it is."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from engines.streams import as_numbered, batches_of, events_of, publish, random_stream, seqs_of, subscribe
from ps2stream.errors import JournalError, MissingError
from ps2stream.journal import Journal
from ps2stream.model.events import split
from ps2stream.model.schemas import PUBLICATIONS, REJECTED, UPDATES
from ps2stream.sources.journal_range import journal_ranges
from ps2stream.sources.source import Source, n_events
from ps2stream.sources.spool import Spool, copied, in_arrival_order, spool, spool_without_seq
from ps2stream.store.directory import DirectoryStore

#: Make sources of some events, at a directory that does not exist yet.
Make = Callable[[pa.RecordBatch, Path], Sequence[Source]]


def _of_a_journal(events: pa.RecordBatch, directory: Path) -> Sequence[Source]:
    with Journal.open(directory, create=True, durable=False) as journal:
        for batch in batches_of(events, 13):
            journal.append_ordered(batch)
        return journal_ranges(directory, 0, journal.last().position, 3)


def _spooled(events: pa.RecordBatch, directory: Path) -> Sequence[Source]:
    return [spool(batches_of(events, 13), DirectoryStore(directory, durable=False), high_water=0)]


def _spooled_by_tasks(events: pa.RecordBatch, directory: Path) -> Sequence[Source]:
    """Let two tasks spool, and tell of it by rows."""
    store = DirectoryStore(directory)
    halves = [events.slice(0, 30), events.slice(30)]
    rows = [spool([half], store.under(f"{n}"), high_water=0).row(n, f"{n}") for n, half in enumerate(halves)]
    return [Spool.of_row(row, store) for row in pa.Table.from_batches(rows).to_pylist()]


def _spooled_without_seq(events: pa.RecordBatch, directory: Path) -> Sequence[Source]:
    """Let two tasks spool events whose seqs then follow those before these."""
    store = DirectoryStore(directory)
    halves = [events.slice(0, 30).drop_columns("seq"), events.slice(30).drop_columns("seq")]
    spools = [spool_without_seq(batches_of(half, 13), store.under(f"{n}")) for n, half in enumerate(halves)]
    return in_arrival_order(spools, after=seqs_of(events)[0] - 1)


def _copied_from_a_journal(events: pa.RecordBatch, directory: Path) -> Sequence[Source]:
    store = DirectoryStore(directory / "copy")
    ranges = _of_a_journal(events, directory)
    return [copied(each, store.under(f"{n}")) for n, each in enumerate(ranges)]


_MAKERS = [_of_a_journal, _spooled, _spooled_by_tasks, _spooled_without_seq, _copied_from_a_journal]


@pytest.fixture(params=_MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def read(sources: Sequence[Source]) -> tuple[list[int], list[int], list[str]]:
    """Return the seqs of publications and of updates, and the reasons of what was rejected."""
    parts = [part for source in sources for part in source.publications()]
    updates = [batch for source in sources for batch, unread in source.updates() if not unread.num_rows]
    assert all(part.publications.schema == PUBLICATIONS for part in parts)
    assert all(part.rejected.schema == REJECTED for part in parts)
    assert all(batch.schema == UPDATES for batch in updates)
    return (
        [seq for part in parts for seq in seqs_of(part.publications)],
        [seq for batch in updates for seq in seqs_of(batch)],
        [reason for part in parts for reason in part.rejected.column("reason").to_pylist()],
    )


@pytest.mark.parametrize("seed", range(3))
def test_sources_read_all_that_they_say_they_have(make: Make, tmp_path: Path, seed: int) -> None:
    events = random_stream(80, seed)
    sources = make(events, tmp_path / "source")
    if make is _spooled_without_seq:
        events = as_numbered(events, after=seqs_of(events)[0] - 1)
    publications, updates = split(events)
    assert sum(source.n_publications for source in sources) == publications.num_rows
    assert sum(source.n_updates for source in sources) == updates.num_rows
    assert sum(map(n_events, sources)) == events.num_rows
    assert max(source.last_seq for source in sources) == seqs_of(events)[-1]
    for _ in range(2):
        assert read(sources) == (seqs_of(publications), seqs_of(updates), [])


def test_a_source_that_was_sent_elsewhere_reads_the_same(make: Make, tmp_path: Path) -> None:
    sources = make(random_stream(80, 1), tmp_path / "source")
    sent = pickle.loads(pickle.dumps(sources))
    assert sent == sources
    assert read(sent) == read(sources)


def test_how_long_events_have_waited_is_told_of_all_or_of_none(make: Make, tmp_path: Path) -> None:
    events = random_stream(80, 2)
    sources = make(events, tmp_path / "source")
    waits = [wait for source in sources for wait in source.waits(now=1e12)]
    assert sum(n for _, n in waits) in (0, events.num_rows)
    assert all(wait_s > 0 for wait_s, _ in waits)
    assert all(wait_s == 0 for source in sources for wait_s, _ in source.waits(now=0.0))


def test_what_is_forgotten_is_not_kept(make: Make, tmp_path: Path) -> None:
    sources = make(random_stream(80, 3), tmp_path / "source")
    sources[0].forget()
    with pytest.raises((JournalError, MissingError)):
        read(sources[:1])
    others = read(sources[1:])
    assert sum(map(n_events, sources[1:])) == sum(map(len, others[:2]))


def test_what_is_forgotten_may_be_forgotten_again_and_others_stay(make: Make, tmp_path: Path) -> None:
    sources = make(events_of(publish(1, "p"), subscribe(2, "s")), tmp_path / "source")
    for _ in range(2):
        for source in sources:
            source.forget()
    later = make(events_of(publish(3, "q")), tmp_path / "later")
    assert read(later) == ([3], [], [])
