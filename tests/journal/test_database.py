from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from ps2stream.errors import JournalError
from ps2stream.journal import End, Journal, database
from ps2stream.journal.packets import decode_publications, decode_updates

MakeEvents = Callable[..., pa.RecordBatch]


def change(directory: Path, statement: str, *values: object) -> None:
    with contextlib.closing(
        sqlite3.connect(directory / "journal.sqlite", isolation_level=None)
    ) as connection:
        connection.execute(statement, values)


@pytest.fixture
def filled(tmp_path: Path, make_events: MakeEvents) -> Path:
    """Return the directory of a closed journal with three packets of some pages each."""
    with Journal.open(tmp_path / "filled", create=True, durable=False) as journal:
        for prefix in "abc":
            journal.append(make_events(300, prefix))
    return tmp_path / "filled"


def test_a_journal_keeps_its_events_when_opened_again(filled: Path) -> None:
    with Journal.open(filled, create=True) as journal:
        assert journal.last() == End(3, 900)


def test_creating_makes_parents_and_leaves_only_the_database(tmp_path: Path) -> None:
    Journal.open(tmp_path / "a" / "b", create=True).close()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["journal.sqlite"]


def test_a_path_that_a_url_would_misread_is_fine(tmp_path: Path, make_events: MakeEvents) -> None:
    directory = tmp_path / "100% of #1? ü"
    with Journal.open(directory, create=True) as journal:
        journal.append(make_events(1))
    assert (directory / "journal.sqlite").exists()


def test_a_missing_journal_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="there is no such directory"):
        Journal.open(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(JournalError, match=r"the directory has no journal\.sqlite"):
        Journal.open(tmp_path)


@pytest.mark.parametrize("create", [False, True])
def test_a_file_is_no_journal_directory(tmp_path: Path, create: bool) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="a journal is a directory, this is a file"):
        Journal.open(tmp_path / "file", create=create)


@pytest.mark.parametrize("create", [False, True])
def test_garbage_is_no_database(tmp_path: Path, create: bool) -> None:
    (tmp_path / "journal.sqlite").write_bytes(b"garbage " * 1_000)
    with pytest.raises(JournalError, match="not an SQLite database"):
        Journal.open(tmp_path, create=create)


def test_an_empty_file_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").touch()
    with pytest.raises(JournalError, match=r"not a journal of PS2Stream"):
        Journal.open(tmp_path)


def test_another_database_is_no_journal(tmp_path: Path) -> None:
    change(tmp_path, "CREATE TABLE packets (position INTEGER PRIMARY KEY)")
    with pytest.raises(JournalError, match=r"a database, but not a journal of PS2Stream"):
        Journal.open(tmp_path, create=True)


def test_another_format_is_refused(filled: Path) -> None:
    change(filled, "PRAGMA user_version = 2")
    with pytest.raises(JournalError, match="has format 2; this version of PS2Stream needs format 1"):
        Journal.open(filled)


def test_another_table_is_refused(filled: Path) -> None:
    change(filled, "ALTER TABLE packets RENAME COLUMN updates TO changes")
    with pytest.raises(JournalError, match="must have a table of packets"):
        Journal.open(filled)


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").mkdir()
    with pytest.raises(JournalError, match="cannot open"):
        Journal.open(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_journal_that_may_not_be_written_says_so(filled: Path, make_events: MakeEvents) -> None:
    (filled / "journal.sqlite").chmod(0o444)
    with Journal.open(filled) as journal, pytest.raises(JournalError, match="must be writable"):
        journal.append(make_events(1))


def test_a_busy_journal_gives_up_with_a_reason(
    filled: Path, make_events: MakeEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.1)
    with (
        Journal.open(filled) as journal,
        contextlib.closing(sqlite3.connect(filled / "journal.sqlite", isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match=r"is busy: another process held it for more than 0\.1 s"):
            journal.append(make_events(1))
        assert journal.last() == End(3, 900)
        other.execute("ROLLBACK")
        assert journal.append(make_events(1)).first_seq == 901


@pytest.mark.parametrize("half", ["updates", "publications"])
def test_a_damaged_half_is_reported_and_the_rest_is_read(filled: Path, half: str) -> None:
    with contextlib.closing(sqlite3.connect(filled / "journal.sqlite")) as connection:
        blob = connection.execute(f"SELECT {half} FROM packets WHERE position = 2").fetchone()[0]
    middle = len(blob) // 2
    change(
        filled,
        f"UPDATE packets SET {half} = ? WHERE position = 2",
        blob[:middle] + b"\xff\x00\xff" + blob[middle + 3 :],
    )
    with Journal.open(filled) as journal:
        first, second, third = journal.read(0, 3)
    assert (first.damage, third.damage) == (None, None)
    assert decode_updates(third.updates).num_rows == 100
    assert second.damage == f"packet 2 of the journal is damaged: wrong checksum of {half}"
    assert getattr(second, half) is None
    intact = decode_publications(second.publications).num_rows + decode_updates(second.updates).num_rows
    assert intact == (200 if half == "updates" else 100)


@pytest.mark.parametrize(
    "change_to",
    [
        "updates = NULL, publications = NULL",
        "first_seq = 'x'",
        "n_updates = n_updates + 1",
        "updates = 7, publications = 'y'",
    ],
)
def test_a_packet_with_wrong_values_is_reported(filled: Path, change_to: str) -> None:
    change(filled, f"UPDATE packets SET {change_to} WHERE position = 2")
    with Journal.open(filled) as journal:
        damages = [packet.damage for packet in journal.read(0, 3)]
    assert damages == [
        None,
        "packet 2 of the journal is damaged: wrong checksum of updates and publications",
        None,
    ]


def test_a_missing_packet_is_damage_not_pruning(filled: Path) -> None:
    change(filled, "DELETE FROM packets WHERE position = 2")
    with Journal.open(filled) as journal, pytest.raises(JournalError, match="damaged: position 2 is missing"):
        list(journal.read(0, 3))


def test_a_truncated_database_is_refused(filled: Path) -> None:
    path = filled / "journal.sqlite"
    for n_bytes in (path.stat().st_size // 2, 8192, 1_000):
        os.truncate(path, n_bytes)
        with (
            pytest.raises(JournalError, match=r"is damaged|not an SQLite database"),
            Journal.open(filled) as journal,
        ):
            list(journal.read(0, 3))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 4 MB where that is permitted."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(directory)]
    if not mount or sys.platform != "linux" or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    yield directory
    subprocess.run(["umount", str(directory)], check=True)


def test_a_full_disk_refuses_appends_and_loses_nothing(small_disk: Path, make_events: MakeEvents) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1_500_000))
    n_appended = 0
    with Journal.open(small_disk / "journal", create=True) as journal:
        with contextlib.suppress(JournalError):
            while n_appended < 1_000:
                journal.append(make_events(50, text="x" * 500))
                n_appended += 1
        assert 0 < n_appended < 1_000
        with pytest.raises(JournalError, match="no space left"):
            journal.append(make_events(5_000, text="x" * 500))
        assert journal.last() == End(n_appended, 50 * n_appended)
        assert all(packet.damage is None for packet in journal.read(0, n_appended))
        ballast.unlink()
        assert journal.append(make_events(50)).position == n_appended + 1
    with Journal.open(small_disk / "journal") as journal:
        assert journal.last() == End(n_appended + 1, 50 * n_appended + 50)
        assert all(packet.damage is None for packet in journal.read(0, n_appended + 1))


def test_no_journal_is_created_on_a_full_disk(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4_096))
    with pytest.raises(JournalError, match="no space left"):
        Journal.open(small_disk / "journal", create=True)
    ballast.unlink()
    Journal.open(small_disk / "journal", create=True).close()


def test_a_database_at_its_limit_refuses_appends_and_loses_nothing(
    filled: Path, make_events: MakeEvents
) -> None:
    with Journal.open(filled) as journal:
        connection = journal._shared_connection
        assert connection is not None
        n_pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {n_pages + 2}")
        with pytest.raises(JournalError, match="no space left"):
            journal.append(make_events(3_000))
        assert journal.last() == End(3, 900)
        connection.execute("PRAGMA max_page_count = 1000000")
        assert journal.append(make_events(3_000)).last_seq == 3_900
