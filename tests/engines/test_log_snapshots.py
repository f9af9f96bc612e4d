"""A snapshot that is written beside batches: they go on, and a crash at any of its steps loses nothing."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engines.later import Later
from engines.streams import SETTINGS as STREAM_SETTINGS
from laws.crashes import CrashError, crashing
from laws.engines import JobHome, sorted_outcome
from ps2stream.config import Settings
from ps2stream.engines.batches import Batches
from ps2stream.engines.held_state import held_state
from ps2stream.engines.local_tasks import LocalTasks
from ps2stream.engines.log_snapshots import LogSnapshots
from ps2stream.engines.stream_start import StreamOptions, StreamStart
from ps2stream.errors import EngineError, StateError
from ps2stream.journal import Journal
from ps2stream.planning.first_plan import journal_sample
from ps2stream.registry.log import SubscriptionLog
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.sources.journal_feed import JournalFeed
from ps2stream.state.host_files import HostFiles
from ps2stream.state.state import State
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.memory import MemoryStore
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events
from state.drivers import Claim
from state.jobs import N_BATCHES, job_at
from waiting import HANG_S

SETTINGS = Settings(n_workers=2, n_dispatchers=1, batch_events=60)

#: So few updates that every batch or two is followed by a snapshot.
OFTEN = 30


@contextlib.contextmanager
def batches_of(job_home: JobHome, beside: Later) -> Iterator[Batches]:
    """Start the job of one process, whose batches the test takes one by one."""
    with (
        Journal.open(job_home.journal) as journal,
        held_state(job_home.state) as held,
        ThreadPoolExecutor(1) as background,
    ):
        start = StreamStart(
            held,
            JournalFeed(journal, job_home.journal, stays_here=True),
            ParquetSink.at(job_home.out),
            SETTINGS,
            StreamOptions(snapshot_every=OFTEN),
            lambda: journal_sample(job_home.journal, SETTINGS),
            background,
            beside,
        )
        yield start.batches(LocalTasks(SETTINGS), lambda done: None, is_lazy=True)


def process_until_due(batches: Batches, beside: Later) -> None:
    while not beside.waiting:
        assert batches.process_next(), "no snapshot is left to another thread"


def published(job_home: JobHome) -> tuple[pa.Table, list[oracle.Rejection]]:
    events = random_events(900, seed=5, publication_share=0.5, n_subscription_ids=60)
    return events, job_home.publish(events, packet_events=10)


class Images:
    """Copies of a job's directory, as a crash at that moment would leave it."""

    def __init__(self, job_home: JobHome, directory: Path) -> None:
        self._job_home, self._directory = job_home, directory
        self.taken: dict[str, JobHome] = {}

    def take(self, name: str) -> None:
        shutil.copytree(self._job_home.directory, self._directory / name)
        self.taken[name] = JobHome(self._directory / name)

    def log(self, name: str) -> tuple[int, int, int]:
        """Return the batch of the newest snapshot, the last batch, and how many files there are."""
        log = State.at(self.taken[name].state).log
        return *log.span(), len(list((self.taken[name].state / "log").glob("*.arrow")))


def test_batches_go_on_beside_a_snapshot_and_a_crash_at_any_of_its_steps_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_home, beside = JobHome(tmp_path / "job"), Later()
    events, late = published(job_home)
    images = Images(job_home, tmp_path)
    delete = DirectoryStore.delete

    def delete_slowly(self: DirectoryStore, *keys: str) -> None:
        images.take("named")
        delete(self, *keys[: len(keys) // 2])
        images.take("half removed")
        delete(self, *keys[len(keys) // 2 :])

    with batches_of(job_home, beside) as batches:
        process_until_due(batches, beside)
        for _ in range(3):
            assert batches.process_next()
        images.take("not written")
        monkeypatch.setattr(DirectoryStore, "delete", delete_slowly)
        beside.run()
        monkeypatch.undo()
        images.take("done")
        assert batches.process_next()

    (_, last, n_before), (base, *_) = images.log("not written"), images.log("done")
    assert images.log("not written") == (-1, last, n_before)
    assert images.log("named") == (base, last, n_before + 1)
    assert 0 <= base < last - 2, "it stands for what was decided when it was due"
    assert images.log("half removed") == (base, last, n_before + 1 - (base + 1) // 2)
    assert images.log("done") == (base, last, 1 + last - base), "what came meanwhile stays"
    for image in images.taken.values():
        image.drain(None, SETTINGS, snapshot_every=OFTEN)
        assert image.outcome(late) == sorted_outcome(oracle.run(events))


def test_one_snapshot_is_written_at_a_time_and_the_next_has_what_came_meanwhile(job_home: JobHome) -> None:
    beside = Later()
    events, late = published(job_home)
    with batches_of(job_home, beside) as batches:
        bases: list[int] = []
        process_until_due(batches, beside)
        while batches.process_next():
            assert len(beside.waiting) <= 1
            if beside.waiting and len(bases) < 2:
                beside.run()
                bases.append(batches.job.state.log.base())
        assert len(bases) == 2
        assert bases[0] < bases[1]
        assert len(beside.waiting) == 1, "nobody runs it, and no other is begun"
    job_home.drain(None, SETTINGS)
    assert job_home.outcome(late) == sorted_outcome(oracle.run(events))


@pytest.mark.parametrize("is_done", [False, True])
def test_a_snapshot_that_fails_ends_the_stream_at_the_next_batch(
    job_home: JobHome, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    beside = Later()
    events, late = published(job_home)
    with batches_of(job_home, beside) as batches:
        process_until_due(batches, beside)
        assert batches.process_next()
        monkeypatch.setattr(
            SubscriptionLog, "snapshot", crashing(SubscriptionLog.snapshot, 0, is_done=is_done)
        )
        beside.run()
        with pytest.raises(CrashError):
            batches.process_next()
    monkeypatch.undo()
    job_home.drain(None, SETTINGS, snapshot_every=OFTEN)
    assert job_home.outcome(late) == sorted_outcome(oracle.run(events))


def test_a_snapshot_that_fails_is_noticed_when_the_stream_is_quiet(
    job_home: JobHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Later()
    published(job_home)
    with batches_of(job_home, beside) as batches:
        while batches.process_next():
            pass
        monkeypatch.setattr(SubscriptionLog, "snapshot", crashing(SubscriptionLog.snapshot, 0, is_done=False))
        beside.run()
        with pytest.raises(CrashError):
            batches.process_next()


def test_the_first_batch_waits_for_its_snapshot_because_workers_read_the_log(job_home: JobHome) -> None:
    events, late = published(job_home)
    job_home.run_briefly(None, SETTINGS, n_batches=4)
    assert State.at(job_home.state).log.base() == -1
    beside = Later()
    with batches_of(job_home, beside) as batches:
        assert batches.process_next()
        assert not beside.waiting
        assert batches.job.state.log.base() >= 3
        process_until_due(batches, beside)
        beside.run()
    job_home.drain(None, SETTINGS)
    assert job_home.outcome(late) == sorted_outcome(oracle.run(events))


@pytest.mark.parametrize("fails", [False, True])
def test_a_stream_that_stops_waits_for_its_snapshot_and_raises_what_it_fails_of(
    job_home: JobHome, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    published(job_home)
    finish, snapshot, is_stopping = ParquetSink.finish, SubscriptionLog.snapshot, threading.Event()

    def finish_and_tell(self: ParquetSink) -> None:
        finish(self)
        is_stopping.set()

    def snapshot_in_the_end(self: SubscriptionLog, *arguments: Any) -> None:
        assert is_stopping.wait(HANG_S), "the stream waits for a snapshot"
        if fails:
            raise CrashError
        snapshot(self, *arguments)

    monkeypatch.setattr(ParquetSink, "finish", finish_and_tell)
    monkeypatch.setattr(SubscriptionLog, "snapshot", snapshot_in_the_end)
    expected = pytest.raises(EngineError, match="CrashError") if fails else contextlib.nullcontext()
    with expected:
        job_home.drain(None, SETTINGS, snapshot_every=OFTEN)
    assert (State.at(job_home.state).log.base() == -1) == fails


def test_a_log_with_a_manifest_has_one_writer(tmp_path: Path) -> None:
    store, beside = MemoryStore(), Later()
    state = job_at(State(store, HostFiles(tmp_path)).taken_over(Claim(store))).state  # type: ignore[arg-type]
    snapshots = LogSnapshots(state, 0, beside)
    assert snapshots.is_due(0)
    snapshots.take(N_BATCHES - 1, state.open(STREAM_SETTINGS).restore_registrar(), log_is_read=False)
    assert not beside.waiting
    assert state.log.base() == N_BATCHES - 1
    assert not snapshots.is_due(0)


def test_a_snapshot_after_one_that_failed_does_not_lose_what_that_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, state = Later(), job_at(State.at(tmp_path)).state
    snapshots = LogSnapshots(state, 0, beside)
    registrar = state.restore_registrar()
    for _ in range(2):
        snapshots.take(N_BATCHES - 1, registrar, log_is_read=False)
        with monkeypatch.context() as patch:
            patch.setattr(SubscriptionLog, "snapshot", crashing(SubscriptionLog.snapshot, 0, is_done=False))
            beside.run()
        with pytest.raises((CrashError, StateError)):
            snapshots.finish()
    assert [number for number, _ in state.log.read()] == list(range(N_BATCHES))
