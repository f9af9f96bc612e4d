"""The SQLite file under a journal: its creation, its settings, and what its errors mean."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ps2stream.errors import JournalError

#: The time that a statement waits for another process's transaction before it gives up.
BUSY_TIMEOUT_S = 60.0

_TRUNCATION_TIMEOUT_MS = 2_000

#: Beyond this the write-ahead log is cut back by force; see :func:`truncate_log`.
MAX_LOG_BYTES = 256 * 1024 * 1024

#: "PS2J", where SQLite and file(1) look for the owner of a database.
_APPLICATION_ID = 0x5053324A
_FORMAT = 1

# publications come last: SQLite stores columns in order, so reading the others never follows the
# chain of pages that holds them.
_COLUMNS = {
    "position": "INTEGER PRIMARY KEY",
    "first_seq": "INTEGER NOT NULL",
    "last_seq": "INTEGER NOT NULL",
    "appended_us": "INTEGER NOT NULL",
    "n_publications": "INTEGER NOT NULL",
    "n_updates": "INTEGER NOT NULL",
    "updates_crc32": "INTEGER NOT NULL",
    "publications_crc32": "INTEGER NOT NULL",
    "updates": "BLOB",
    "publications": "BLOB",
}

# Packets of 1 MB were written at 90 MB/s with SQLite's usual 4 KB pages, at 165 MB/s with these, and
# no faster with larger ones, which make a single event dearer.
_PAGE_BYTES = 8192


def create(path: Path) -> None:
    """Create an empty journal database and its directory, unless there is one.

    It is built aside and then linked to its name, so that no process ever sees half of it and of
    several creators one wins.
    """
    with explained(path):
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(parents=True)
        _require_directory(path.parent)
        if path.exists():
            return
        with tempfile.TemporaryDirectory(prefix=f"{path.name}.new-", dir=path.parent) as aside:
            unlinked = Path(aside) / path.name
            _build(unlinked)
            with contextlib.suppress(FileExistsError):
                os.link(unlinked, path)
        for directory in (path.parent, path.parent.parent):
            _sync(directory)


def _require_directory(directory: Path) -> None:
    if not directory.exists():
        raise JournalError(f"no journal at {directory}: there is no such directory")
    if not directory.is_dir():
        raise JournalError(f"no journal at {directory}: a journal is a directory, this is a file")


def _build(path: Path) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
        connection.execute(f"CREATE TABLE packets ({columns})")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def connect(path: Path, *, durable: bool) -> sqlite3.Connection:
    """Open an existing journal database, in autocommit mode, or say what is wrong with it."""
    with explained(path):
        _require_directory(path.parent)
        if not path.exists():
            raise JournalError(f"no journal at {path.parent}: the directory has no {path.name}")
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{_mode(path)}",
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            _check_format(connection, path)
            _configure(connection, durable=durable)
        except BaseException:
            connection.close()
            raise
    return connection


def _mode(path: Path) -> str:
    """Say how SQLite is to open a file.

    rw: a file that vanished meanwhile is an error, not a new database. Readers need write access, too: they
    share the index of the write-ahead log. Only where nobody can write is none needed.
    """
    if not os.statvfs(path).f_flag & os.ST_RDONLY:
        return "mode=rw"
    if log_bytes(path):
        raise JournalError(f"{path} was not closed; it can be read once its file system can be written to")
    return "mode=ro&immutable=1"


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise JournalError(f"{path} is a database, but not a journal of PS2Stream")
    came = _pragma(connection, "user_version")
    if came != _FORMAT:
        raise JournalError(f"{path} has format {came}; this version of PS2Stream needs format {_FORMAT}")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(packets)")]
    if columns != list(_COLUMNS):
        raise JournalError(f"{path} must have a table of packets with {list(_COLUMNS)}; got {columns}")


def _configure(connection: sqlite3.Connection, *, durable: bool) -> None:
    # NORMAL survives the death of a process; after a power cut the newest appends may be gone,
    # but what is there is whole. OFF would risk the whole file.
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    # On macOS fsync alone leaves the data in the drive's cache. No effect elsewhere.
    connection.execute(f"PRAGMA fullfsync = {int(durable)}")
    # Some distributions overwrite what is deleted with zeros: pruning would write all it drops.
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute(f"PRAGMA journal_size_limit = {MAX_LOG_BYTES}")


def begin_write(connection: sqlite3.Connection) -> None:
    """Begin a transaction that may write, when the others' are over.

    SQLite itself waits with pauses of up to 100 ms: next to publishers without a pause an append
    then took up to 2.3 s. Short random pauses keep it to some tens of milliseconds.
    """
    deadline_s = time.monotonic() + BUSY_TIMEOUT_S
    with _busy_timeout(connection, 0):
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                    raise
            time.sleep(random.uniform(0.0002, 0.001))


@contextlib.contextmanager
def _busy_timeout(connection: sqlite3.Connection, timeout_ms: int) -> Iterator[None]:
    connection.execute(f"PRAGMA busy_timeout = {timeout_ms}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_TIMEOUT_S * 1_000)}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def version(connection: sqlite3.Connection) -> int:
    """Return a number that changes with every transaction of another connection."""
    return _pragma(connection, "data_version")


def log_bytes(path: Path) -> int:
    """Return the size of the write-ahead log."""
    try:
        return os.stat(f"{path}-wal").st_size
    except FileNotFoundError:
        return 0


def truncate_log(connection: sqlite3.Connection) -> None:
    """Move the write-ahead log into the database and cut it to nothing, if readers let us.

    SQLite does the first half by itself, every 1,000 pages, but starts the log over only at a
    moment without readers; under many overlapping readers that moment may never come by
    itself. This waits for one, not long because publishers wait with it, and goes on without.
    """
    with _busy_timeout(connection, _TRUNCATION_TIMEOUT_MS):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def reclaim(connection: sqlite3.Connection, step_pages: int = 2_000) -> None:
    """Give free pages back to the file system, in steps between which others can append."""
    for _ in range(0, _pragma(connection, "freelist_count"), step_pages):
        # The pragma frees one page a step and returns no column; execute() would stop after the first.
        connection.executescript(f"PRAGMA incremental_vacuum({step_pages})")
    truncate_log(connection)


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the errors of SQLite and of the file system into a :class:`JournalError` that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise JournalError(_explain(path, error)) from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise JournalError(_no_space(path)) from error
        raise JournalError(f"cannot use the journal {path}: {error.strerror or error}") from error


def _explain(path: Path, error: sqlite3.Error) -> str:
    # Errors of the sqlite3 module itself carry no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    # The index of the log lives in a mapped file; that it cannot grow has the same cause.
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return _no_space(path)
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return _no_space(path)
        case sqlite3.SQLITE_BUSY:
            return f"{path} is busy: another process held it for more than {BUSY_TIMEOUT_S:g} s"
        case sqlite3.SQLITE_NOTADB:
            return f"{path} is not a journal: it is not an SQLite database"
        case sqlite3.SQLITE_CORRUPT:
            return f"{path} is damaged ({error}); restore it from a copy"
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return f"cannot open {path}: {error}; its directory must be readable and writable"
        case sqlite3.SQLITE_READONLY:
            return f"cannot write to {path}: {error}; the file and its directory must be writable"
        case sqlite3.SQLITE_TOOBIG:
            return f"an event is too large for {path}: {error}"
        case _:
            return f"cannot use the journal {path}: {error}"


def _no_space(path: Path) -> str:
    return f"no space left on the disk of {path}"
