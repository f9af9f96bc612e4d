"""The audit log keeps a record for each batch that an adjustment was made before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ps2stream.balance.adjustments import Adjustment
from ps2stream.errors import StateError
from ps2stream.state.audit import AuditLog
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore
from s3_server import S3Server

RECORD = Adjustment("local", 3, "now", "a test", 1, 2, (3.0, 1.0), selector="gr")


def test_records_come_back_in_the_order_of_their_batches(store: Store) -> None:
    log = AuditLog(store)
    records = [replace(RECORD, batch_id=batch_id) for batch_id in (12, 3, 1_000_000_000_000 - 1, 4)]
    for record in records:
        log.write(record.batch_id, record)
    assert log.read() == sorted(records, key=lambda record: record.batch_id)
    assert AuditLog(store).read() == log.read()


def test_a_log_that_is_not_there_is_empty_and_is_not_made_for_nothing(tmp_path: Path) -> None:
    log = AuditLog(DirectoryStore(tmp_path / "nothing"))
    assert log.read() == []
    log.write(3, None)
    assert not (tmp_path / "nothing").exists()


def test_what_becomes_known_later_takes_the_place_of_the_record(store: Store) -> None:
    log = AuditLog(store)
    log.write(3, RECORD)
    known = replace(RECORD, loads_after=(2.0, 2.0), migration_s=0.5, n_delayed=10)
    log.write(3, known)
    assert log.read() == [known]


def test_a_batch_that_did_without_the_adjustment_after_a_crash_has_no_record(store: Store) -> None:
    log = AuditLog(store)
    log.write(3, RECORD)
    log.write(4, replace(RECORD, batch_id=4))
    log.write(4, None)
    log.write(4, None)
    assert log.read() == [RECORD]


def test_nothing_is_asked_of_the_store_where_every_start_of_a_job_is_an_epoch(s3: S3Server) -> None:
    store = s3.store()
    with s3.counting() as requests:
        AuditLog(store, 2, lambda batch_id: 2).write(4, None)
    assert requests == []
    AuditLog(store, 1).write(3, RECORD)
    assert AuditLog(store, 2, lambda batch_id: 2).read() == [], "that of a start which died does not count"


def test_a_damaged_record_is_an_error_that_names_it_and_half_of_one_does_not_count(tmp_path: Path) -> None:
    log = AuditLog(DirectoryStore(tmp_path))
    log.write(3, RECORD)
    (tmp_path / ".batch-000000000004.json.99.tmp").write_text("{")
    (tmp_path / "notes.txt").write_text("not ours")
    assert log.read() == [RECORD]
    (tmp_path / "batch-000000000005.json").write_text("{")
    with pytest.raises(StateError, match=r"batch-000000000005\.json cannot be read"):
        log.read()
