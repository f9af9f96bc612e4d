"""Roles as tasks: one that Spark gave up on writes no matches, and none asks the store more than it must."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from engines.streams import (
    SETTINGS,
    TOKENIZER,
    events_of,
    plan_for,
    publications_of,
    publish,
    subscribe,
    unsubscribe,
    updates_of,
)
from ps2stream.engines.batch_tasks import BatchContext
from ps2stream.engines.spark import stages
from ps2stream.engines.spark.pinned_shuffle import Sent
from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.packets import Packet, PacketKind, encode
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.reports import report_from_json
from ps2stream.sinks.memory import MemorySink
from ps2stream.sources.spool import Spool
from ps2stream.state.state import State
from ps2stream.store.memory import MemoryStore
from ps2stream.store.traffic import Traffic
from s3_server import S3Server
from state.drivers import Claim


class _Task:
    """A task of the third partition."""

    @classmethod
    def get(cls) -> _Task:
        return cls()

    def partitionId(self) -> int:  # noqa: N802  # as Spark names it
        return 2


def test_every_attempt_of_a_task_spools_to_a_part_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "TaskContext", _Task)
    store, events = MemoryStore(), events_of(subscribe(0, "s"), publish(0, "p")).drop_columns("seq")
    spool_events = stages.SpoolEvents(store, high_water=None)
    (row,) = (row for batch in spool_events(iter([events])) for row in batch.to_pylist())
    (again,) = (row for batch in spool_events(iter([events, events])) for row in batch.to_pylist())
    assert (row["partition"], again["partition"]) == (2, 2)
    first, second = (Spool.of_row(each, store) for each in (row, again))
    assert [sum(batch.updates.num_rows for batch in each.updates()) for each in (first, second)] == [1, 2]


class _OneWorker:
    """A job of one worker, whose batches are decided on here and matched as tasks do it."""

    def __init__(self, state: State) -> None:
        self._settings = replace(SETTINGS, n_workers=1)
        plan = plan_for(events_of(subscribe(1, "s")), self._settings)
        self.state = state.create(plan, self._settings).open(self._settings)
        self.registrar = Registrar(plan, self.state.host.storage)
        self.sink = MemorySink()

    def decide(self, batch_id: int, events: pa.RecordBatch) -> list[Sent]:
        """Return what the worker is sent."""
        segment = self.registrar.decide(updates_of(events)).segment
        self.state.ledger.decide(batch_id, segment, self.registrar.plan_numbers)
        sent = Dispatcher(self.registrar.grid_ts, TOKENIZER).dispatch(publications_of(events)).packets
        return [(0, Packet(PacketKind.ROUTED_PUBLICATIONS, encode(each))) for each in sent.values()]

    def task(self, batch_id: int, horizon: int) -> stages.WorkAndMerge:
        routing = self.registrar.routing.map(lambda stored: (stored.plan.number, stored.name))
        return stages.WorkAndMerge(
            BatchContext(
                batch_id,
                pickle.loads(pickle.dumps(self.state.told(batch_id))),
                self.sink,
                self._settings,
                self.registrar.registry_name,
                routing,
                horizon,
                (),
            )
        )

    def matches(self) -> list[tuple[str, str]]:
        rows = self.sink.matches().to_pylist()
        return sorted((row["subscription_id"], row["publication_id"]) for row in rows)


def _begun(tmp_path: Path) -> tuple[_OneWorker, stages.WorkAndMerge, list[Sent]]:
    """Make a job whose first batch has been matched, by a task that may come back."""
    job = _OneWorker(State.at(tmp_path))
    events = events_of(subscribe(1, "ends"), subscribe(2, "stays"), publish(3, "p"), unsubscribe(4, "ends"))
    sent = job.decide(0, events)
    task = job.task(0, BEFORE_ALL_SEQS)
    for _ in range(2):  # a task that is tried again
        list(task(0, sent))
    assert job.matches() == [("ends", "p"), ("stays", "p")]
    return job, task, sent


def test_a_task_of_an_earlier_batch_does_not_replace_matches_that_its_index_has_forgotten(
    tmp_path: Path,
) -> None:
    job, left_behind, sent = _begun(tmp_path)
    later = job.decide(1, events_of(publish(5, "q")))
    list(job.task(1, 4)(0, later))
    with pytest.raises(StateError, match=r"batch 0 is over: .* decided up to batch 1"):
        list(left_behind(0, sent))
    assert job.matches() == [("ends", "p"), ("stays", "p"), ("stays", "q")]


def test_a_task_does_not_replace_matches_when_a_snapshot_stands_for_its_batch(tmp_path: Path) -> None:
    job, left_behind, sent = _begun(tmp_path)
    job.state.snapshot(0, job.registrar)
    job.state.host.worker_home(0).mark_dirty()
    with pytest.raises(StateError, match=r"batch 0 is over"):
        list(left_behind(0, sent))
    assert job.matches() == [("ends", "p"), ("stays", "p")]


class _Hosts:
    """Hosts that share a store and nothing else; what is asked of the store is counted for each task."""

    def __init__(self, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._s3, self._base, self._monkeypatch = s3, tmp_path, monkeypatch
        self.be("driver")
        store = s3.store()
        self.job = _OneWorker(State.among_hosts(store).taken_over(Claim(store)))  # type: ignore[arg-type]

    def be(self, host: str) -> None:
        self._monkeypatch.setenv("PS2STREAM_LOCAL_DIR", str(self._base / host))

    def run(self, host: str, task: stages.WorkAndMerge, sent: list[Sent]) -> list[str]:
        """Run a task on a host; return what it asked for, safety checks last, and see that it tells so."""
        self.be(host)
        with self._s3.counting() as requests:
            *_, last = task(0, sent)
        self.be("driver")
        told = report_from_json(last.payload.decode())
        assert isinstance(told, Traffic)
        assert (told.gets, told.requests) == (len(requests), len(requests))
        return [path.rpartition("/")[2] for _, path in requests]

    def kept(self, host: str) -> list[str]:
        """Return what a host keeps of the log."""
        files = self._base / host / "blobs" / "files"
        return sorted(path.name for path in files.rglob("*.arrow"))


_SAFETY = ["manifest-00000001.json", "ledger-00000001.json", "00000002.json"]


def _segment(batch_id: int) -> str:
    return f"batch-{batch_id:012}-00000001.arrow"


def test_a_task_asks_the_store_only_for_what_its_host_lacks_and_whether_it_is_late(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = _Hosts(s3, tmp_path, monkeypatch)
    for batch_id in range(3):
        seq = 10 * batch_id
        sent = hosts.job.decide(
            batch_id, events_of(subscribe(seq + 1, f"s{batch_id}"), publish(seq + 2, f"p{batch_id}"))
        )
        task = hosts.job.task(batch_id, seq)
        for host in ("h1", "h2"):
            new = [_segment(batch_id)] if batch_id else ["plan-000001-00000001.npz", _segment(0)]
            assert hosts.run(host, task, sent) == [*new, *_SAFETY]
            assert hosts.run(host, task, sent) == _SAFETY, "tried again, or of another worker"
    assert hosts.job.matches() == [(f"s{n}", f"p{m}") for n in range(3) for m in range(n, 3)]
    assert hosts.kept("h1") == [_segment(n) for n in range(3)]
    assert hosts.run("h3", task, sent) == [
        "plan-000001-00000001.npz",
        *(_segment(n) for n in range(3)),
        *_SAFETY,
    ], "a host that comes later"


def test_a_host_forgets_what_a_snapshot_stands_for(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = _Hosts(s3, tmp_path, monkeypatch)
    job = hosts.job
    for batch_id in range(3):
        seq = 10 * batch_id
        sent = job.decide(batch_id, events_of(subscribe(seq + 1, f"s{batch_id}"), publish(seq + 2, "p")))
        hosts.run("h1", job.task(batch_id, BEFORE_ALL_SEQS), sent)
        if batch_id == 1:
            job.state.snapshot(1, job.registrar)
    sent = job.decide(3, events_of(subscribe(31, "s3"), publish(32, "p")))
    assert hosts.run("h1", job.task(3, BEFORE_ALL_SEQS), sent) == [_segment(3), *_SAFETY]
    assert hosts.kept("h1") == [_segment(2), _segment(3)]
    assert hosts.kept("driver") == [_segment(2), _segment(3), "snapshot-000000000001-00000001.arrow"]
    hosts.run("h2", job.task(3, BEFORE_ALL_SEQS), sent)
    assert hosts.kept("h2") == hosts.kept("driver")


def test_a_task_of_an_earlier_batch_is_refused_on_a_host_that_has_all_it_needs(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = _Hosts(s3, tmp_path, monkeypatch)
    job = hosts.job
    sent = job.decide(0, events_of(subscribe(1, "ends"), publish(2, "p"), unsubscribe(3, "ends")))
    left_behind = job.task(0, BEFORE_ALL_SEQS)
    hosts.run("h1", left_behind, sent)
    later = job.decide(1, events_of(publish(5, "q")))
    hosts.run("h1", job.task(1, 4), later)
    with pytest.raises(StateError, match=r"batch 0 is over"):
        hosts.run("h1", left_behind, sent)
    assert job.matches() == [("ends", "p")]
