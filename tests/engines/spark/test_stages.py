"""Roles take their packets in portions of a bounded size; a task that Spark gave up on writes no matches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from ps2stream.engines.spark import stages
from ps2stream.engines.spark.pinned_shuffle import Sent
from ps2stream.errors import StateError
from ps2stream.model.events import nothing_rejected
from ps2stream.model.schemas import BEFORE_ALL_SEQS, PUBLICATIONS
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.packets import Packet, PacketKind, encode
from ps2stream.roles.registrar import Registrar
from ps2stream.sinks.memory import MemorySink
from ps2stream.sources.source import SourceBatch
from ps2stream.sources.spool import Spool
from ps2stream.state.state import State
from ps2stream.store.memory import MemoryStore


class _Source:
    """Packets in memory."""

    def __init__(self, *texts: list[str]) -> None:
        self._texts = texts

    def publications(self) -> Iterator[SourceBatch]:
        for texts in self._texts:
            rows = [{"seq": number, "id": "p", "text": text} for number, text in enumerate(texts)]
            yield SourceBatch(pa.RecordBatch.from_pylist(rows, PUBLICATIONS), nothing_rejected())


@pytest.mark.parametrize(
    ("most", "most_bytes", "sizes"),
    [(100, 1 << 20, [7]), (4, 1 << 20, [3, 4]), (100, 1_200, [2, 5]), (1, 1, [1, 1, 1, 4])],
)
def test_packets_are_joined_up_to_a_number_of_publications_and_of_bytes(
    most: int, most_bytes: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "_ROUTE_AT_ONCE", most)
    monkeypatch.setattr(stages, "_ROUTE_BYTES_AT_ONCE", most_bytes)
    sources: Any = (_Source(["x" * 500], ["y" * 500]), _Source(["z" * 500], ["a", "b", "c", "d"]))
    portions = [publications for publications, _ in stages._gathered(sources)]
    assert [portion.num_rows for portion in portions] == sizes
    texts = [text for portion in portions for text in portion.column("text").to_pylist()]
    assert texts == ["x" * 500, "y" * 500, "z" * 500, "a", "b", "c", "d"]


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

    def __init__(self, directory: Path) -> None:
        self._settings = replace(SETTINGS, n_workers=1)
        plan = plan_for(events_of(subscribe(1, "s")), self._settings)
        self.state = State.at(directory).create(plan, self._settings)
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
            stages.BatchContext(
                batch_id,
                self.state,
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
    job = _OneWorker(tmp_path)
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
