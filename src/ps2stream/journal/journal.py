"""The journal: append events, read packets, drop what is no longer needed."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

import numpy as np
import pyarrow as pa

from ps2stream.errors import JournalError
from ps2stream.files import AnyPath, absolute, new_file
from ps2stream.journal import database
from ps2stream.journal.packets import (
    JournalPacket,
    PacketSpan,
    checksum,
    cut_to_packets,
    encode_packet,
    verify,
)
from ps2stream.model.events import conform
from ps2stream.model.schemas import EVENTS

FILE_NAME = "journal.sqlite"
ID_NAME = "id"

#: What is appended without numbers of its own.
_UNNUMBERED = EVENTS.remove(EVENTS.get_field_index("seq"))

#: Pruning drops this many events in one transaction; publishers wait no longer than it takes.
_PRUNE_EVENTS = 200_000

_INSERT = f"INSERT INTO packets VALUES ({', '.join('?' * 10)})"
_NUMBERS = "position, first_seq, last_seq, appended_us, n_publications, n_updates"
_WHOLE = f"{_NUMBERS}, updates, publications, updates_crc32, publications_crc32"
_UPDATES_ONLY = f"{_NUMBERS}, updates, NULL, updates_crc32, NULL"


@dataclass(frozen=True, slots=True)
class Appended:
    """Where the events of one append lie: their seqs, and the position of the last packet.

    Of an append without events, ``last_seq`` is ``first_seq - 1``.
    """

    position: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class End:
    """The newest packet and the last seq in it; both 0 when nothing was appended yet."""

    position: int
    seq: int


class Journal:
    """A durable, append-only log of events in a directory.

    An object may be shared by threads but not by processes: each process opens its own. It holds
    no lock and no snapshot between calls, so an idle or slow user hinders nobody.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._shared_connection: sqlite3.Connection | None = connection
        self._lock = threading.RLock()
        self._process_id = os.getpid()
        self._next_truncation_bytes = database.MAX_LOG_BYTES

    @classmethod
    def open(cls, directory: AnyPath, *, create: bool = False, durable: bool = True) -> Journal:
        """Open the journal of a directory; ``create`` makes the directory and the journal if missing.

        Without ``durable`` an append survives the death of the process, but the newest ones
        may not survive a power cut.
        """
        path = absolute(directory) / FILE_NAME
        if create:
            database.create(path)
        return cls(path, database.connect(path, durable=durable))

    def close(self) -> None:
        """Close the journal; closing twice is fine."""
        # A copy that came by fork belongs to the parent; closing it here would touch the parent's files.
        if self._process_id != os.getpid():
            return
        with self._lock, database.explained(self._path):
            if self._shared_connection is not None:
                self._shared_connection.close()
                self._shared_connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise JournalError(f"a journal cannot be sent to another process; open {self._path.parent} there")

    def identity(self) -> str:
        """Return what tells this journal from all others, also from one that takes its place."""
        path = self._path.with_name(ID_NAME)
        if not path.exists():  # of a journal that an earlier version made
            new_file(path, uuid.uuid4().hex.encode())
        return path.read_text()

    def append(self, events: pa.RecordBatch | pa.Table) -> Appended:
        """Append events in row order, all or none; a column ``seq`` is ignored, the journal numbers them.

        All packets of an append are one transaction, so a very large one should come in parts.
        """
        table = conform(_table(events), _UNNUMBERED)
        with self._writing() as connection:
            end = _end(connection)
            seqs = np.arange(end.seq + 1, end.seq + 1 + table.num_rows, dtype=np.int64)
            return _store(connection, table.add_column(0, "seq", pa.array(seqs)), end)

    def append_ordered(self, events: pa.RecordBatch | pa.Table) -> Appended:
        """Append events that carry their own seqs, which increase and lie above all in the journal."""
        table = conform(_table(events))
        if table.column("seq").null_count:
            raise JournalError(f"seqs appended to {self._path} must not be null")
        seqs = table.column("seq").to_numpy()
        if not bool(np.all(seqs[1:] > seqs[:-1])):
            raise JournalError(f"seqs appended to {self._path} must increase from row to row")
        with self._writing() as connection:
            end = _end(connection)
            if len(seqs) and end.position and seqs[0] <= end.seq:
                raise JournalError(f"seqs appended to {self._path} must be above {end.seq}; got {seqs[0]}")
            return _store(connection, table, end)

    def last(self) -> End:
        """Return the end of the journal."""
        with self._reading() as connection:
            return _end(connection)

    def version(self) -> tuple[int, int]:
        """Return what is different after every append, or pruning, by anybody.

        To ask for it takes a fraction of what a look at the packets takes.
        """
        with self._reading() as connection:
            return database.version(connection), connection.total_changes

    def oldest(self) -> int:
        """Return the position of the oldest packet that is left; 1 when nothing was appended yet."""
        with self._reading() as connection:
            return _bounds(connection)[0]

    def end_within(self, after: int, max_events: int) -> int:
        """Return the largest position up to which the packets beyond ``after`` hold ``max_events`` or fewer.

        At least one packet is taken if there is any, so that a reader always gets on.
        """
        with self._reading() as connection:
            position = _end_within(connection, after, max_events)
            self._check_range(connection, after, after)
            return position

    def spans(self, after: int, upto: int) -> list[PacketSpan]:
        """Return the sizes of the packets beyond ``after`` up to ``upto``, without reading them."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT position, n_publications, n_updates, last_seq, appended_us FROM packets"
                " WHERE position > ? AND position <= ? ORDER BY position",
                (after, upto),
            ).fetchall()
            # Checked last: what is still there now was there for the statement above.
            self._check_range(connection, after, upto)
            return [PacketSpan(*row) for row in rows]

    def read(self, after: int, upto: int, *, publications: bool = True) -> Iterator[JournalPacket]:
        """Read the packets beyond ``after`` up to ``upto``, in order; a damaged one says so in ``damage``.

        Without ``publications`` these stay on disk, unread and unchecked.
        """
        with self._reading() as connection:
            self._check_range(connection, after, upto)
        statement = f"SELECT {_WHOLE if publications else _UPDATES_ONLY} FROM packets WHERE position = ?"
        # One statement a packet: a cursor over the range would hold a snapshot for as long as the
        # caller takes, and the write-ahead log could not start over.
        for position in range(after + 1, upto + 1):
            with self._reading() as connection:
                row = connection.execute(statement, (position,)).fetchone()
                if row is None:
                    self._check_range(connection, position - 1, position)
                    raise JournalError(f"{self._path} is damaged: position {position} is missing")
            *fields, updates_crc32, publications_crc32 = row
            yield verify(
                JournalPacket(*fields), updates_crc32=updates_crc32, publications_crc32=publications_crc32
            )

    def prune(self, upto_position: int) -> int:
        """Drop the packets up to a position, return their number and give their space back.

        The newest packet always stays: it knows the seq from which to go on. Dropping writes to
        the log first, so on a disk that is full to the last page it may fail; then nothing is lost.
        """
        n_dropped = 0
        while n_step := self._prune_step(upto_position):
            n_dropped += n_step
        if n_dropped:
            with self._reading() as connection:
                database.reclaim(connection)
        return n_dropped

    def _prune_step(self, upto_position: int) -> int:
        with self._writing() as connection:
            oldest, newest = _bounds(connection)
            upto = min(upto_position, newest - 1)
            if upto < oldest:
                return 0
            upto = min(upto, _end_within(connection, oldest - 1, _PRUNE_EVENTS))
            return connection.execute("DELETE FROM packets WHERE position <= ?", (upto,)).rowcount

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._process_id != os.getpid():
            raise JournalError(
                f"{self._path} was opened in process {self._process_id}; each process must open its own"
            )
        with self._lock, database.explained(self._path):
            if self._shared_connection is None:
                raise JournalError(f"{self._path} is closed")
            yield self._shared_connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as connection:
            database.begin_write(connection)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # After some errors, a full disk among them, SQLite has already rolled back.
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise
            self._limit_log(connection)

    def _limit_log(self, connection: sqlite3.Connection) -> None:
        n_bytes = database.log_bytes(self._path)
        if n_bytes <= self._next_truncation_bytes:
            return
        # The append is already durable: whatever fails here must not look like its failure.
        with contextlib.suppress(sqlite3.Error):
            database.truncate_log(connection)
        # Where it did not help, a reader hangs: do not wait for it again at every append.
        self._next_truncation_bytes = database.log_bytes(self._path) + database.MAX_LOG_BYTES

    def _check_range(self, connection: sqlite3.Connection, after: int, upto: int) -> None:
        oldest, newest = _bounds(connection)
        if after + 1 < oldest:
            raise JournalError(
                f"position {after + 1} of {self._path} was pruned; the oldest one left is {oldest}"
            )
        if max(after, upto) > newest:
            raise JournalError(
                f"{self._path} ends at position {newest}; got {max(after, upto)}, perhaps of another journal"
            )


def _store(connection: sqlite3.Connection, events: pa.Table, end: End) -> Appended:
    appended_us = time.time_ns() // 1_000
    position, last_seq = end.position, end.seq
    for batch in cut_to_packets(events):
        position += 1
        packet = encode_packet(batch).at_position(position, appended_us)
        last_seq = packet.last_seq
        connection.execute(
            _INSERT,
            (
                packet.position,
                packet.first_seq,
                packet.last_seq,
                packet.appended_us,
                packet.n_publications,
                packet.n_updates,
                checksum(packet, packet.updates),
                checksum(packet, packet.publications),
                packet.updates,
                packet.publications,
            ),
        )
    first_seq = events.column("seq")[0].as_py() if events.num_rows else end.seq + 1
    return Appended(position, first_seq, last_seq)


def _table(events: pa.RecordBatch | pa.Table) -> pa.Table:
    return pa.Table.from_batches([events]) if isinstance(events, pa.RecordBatch) else events


def _end(connection: sqlite3.Connection) -> End:
    row = connection.execute(
        "SELECT position, last_seq FROM packets ORDER BY position DESC LIMIT 1"
    ).fetchone()
    return End(*row) if row else End(0, 0)


def _bounds(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the oldest and the newest position; (1, 0) when there is none."""
    # Two subqueries: SQLite finds either end of a key at once, but scans for both in one.
    row = connection.execute(
        "SELECT (SELECT min(position) FROM packets), (SELECT max(position) FROM packets)"
    )
    oldest, newest = row.fetchone()
    return (1, 0) if oldest is None else (oldest, newest)


def _end_within(connection: sqlite3.Connection, after: int, max_events: int) -> int:
    position, n_events = after, 0
    rows = connection.execute(
        "SELECT position, n_publications + n_updates FROM packets WHERE position > ? ORDER BY position",
        (after,),
    )
    # Closed at once: an unfinished statement would keep its snapshot.
    with contextlib.closing(rows):
        for candidate, n_more in rows:
            n_events += n_more
            if n_events > max_events and position > after:
                break
            position = candidate
    return position
