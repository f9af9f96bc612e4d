"""Whatever happens to a worker's files, it comes back with what the log says."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.deployments import Deployment, local_stream, random_plan
from engines.streams import (
    SETTINGS,
    TOKENIZER,
    batches_of,
    matches_of,
    plan_for,
    publications_of,
    random_stream,
    updates_of,
)
from ps2stream.arrays import MappedStorage, frozen
from ps2stream.balance.adjustments import Adjustment
from ps2stream.errors import StateError
from ps2stream.matching.contract import IndexSettings
from ps2stream.matching.index import GI2
from ps2stream.matching.layout import DTYPES, HEAD_SIZE, needed_sizes
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.model.space import Grid
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.segments import MOVE, SEGMENT, changes
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker import Worker
from ps2stream.routing.routing import Routing
from ps2stream.state import state as state_module
from ps2stream.state.state import State, WorkerHome

EVERY_BATCH = 8
WORKER = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A state whose log has all updates of a stream, and what a worker should find at its end."""

    state: State
    plan: Plan
    segments: list[pa.RecordBatch]
    packet: pa.RecordBatch
    expected: list[tuple[int, str, int]]

    def matches(
        self, batch_id: int = EVERY_BATCH - 1, state: State | None = None
    ) -> list[tuple[int, str, int]]:
        """Let the worker match all publications, with what it has seen up to a batch."""
        index_settings = SETTINGS.index_settings(self.plan)
        with (state or self.state).worker(WORKER, index_settings, batch_id, BEFORE_ALL_SEQS) as worker:
            return matches_of(worker.match(self.packet, BEFORE_ALL_SEQS))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    events = random_stream(400, 7, n_subscription_ids=30)
    plan = plan_for(events)
    state = State.create(tmp_path / "state", plan, SETTINGS)
    registrar, segments = Registrar(plan), []
    for batch_id, batch in enumerate(batches_of(events, 50)):
        segments.append(registrar.decide(updates_of(batch)).segment)
        state.log.append(batch_id, segments[-1], registrar.plan_numbers)
    assert len(segments) == EVERY_BATCH
    router = Registrar(plan)
    router.decide(updates_of(events))
    packet = Dispatcher(router.grid_ts, TOKENIZER).dispatch(publications_of(events)).packets[WORKER]
    expected = _expected(plan, segments, packet)
    assert len(expected) > 20
    return Job(state, plan, segments, packet, expected)


def _expected(
    plan: Plan, segments: list[pa.RecordBatch], packet: pa.RecordBatch
) -> list[tuple[int, str, int]]:
    """Let a worker that never saw a disk match all publications."""
    worker = Worker(WORKER, GI2.create(SETTINGS.index_settings(plan)))
    for segment in segments:
        worker.update(segment)
    return matches_of(worker.match(packet, BEFORE_ALL_SEQS))


@pytest.fixture
def rebuilds(monkeypatch: pytest.MonkeyPatch) -> list[WorkerHome]:
    """Note whenever an index is begun anew."""
    begun: list[WorkerHome] = []
    rebuild = WorkerHome.rebuild

    def noting(self: WorkerHome, settings: object) -> GI2:
        begun.append(self)
        return rebuild(self, settings)  # type: ignore[arg-type]

    monkeypatch.setattr(WorkerHome, "rebuild", noting)
    return begun


def _arrays(job: Job) -> Path:
    return job.state.directory / "index" / f"worker-{WORKER:03}" / "arrays"


def test_a_snapshot_of_nothing_is_a_snapshot(tmp_path: Path) -> None:
    plan = plan_for(random_stream(20, 1))
    state = State.create(tmp_path / "state", plan, SETTINGS)
    state.snapshot(3, Registrar(plan))
    assert [(number, segment.num_rows) for number, segment in state.log.read()] == [(3, 0)]
    assert state.routing() == Registrar(plan).plan_numbers


def _n_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def test_a_worker_catches_up_with_the_log_batch_by_batch_or_at_once(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    for batch_id in range(EVERY_BATCH):
        found = job.matches(batch_id)
    assert found == job.expected
    assert len(rebuilds) == 1, "only the first time"
    again = State(job.state.directory)
    assert job.matches(state=again) == job.expected
    assert len(rebuilds) == 1


def test_a_worker_that_is_asked_for_an_older_batch_again_finds_the_same(job: Job) -> None:
    everything = job.matches()
    assert job.matches(batch_id=3) == everything, (
        "updates that came since are invisible to older publications"
    )
    assert job.matches() == job.expected


def test_an_index_whose_process_was_killed_is_built_again(job: Job, rebuilds: list[WorkerHome]) -> None:
    job.matches(batch_id=2)
    index_settings = SETTINGS.index_settings(job.plan)
    for batch_id in (3, 4, 7):
        killed = job.state.worker(WORKER, index_settings, batch_id, BEFORE_ALL_SEQS)
        # Half of a change is in the files; the mark is what tells.
        killed.__enter__().index._arrays.postings[:] = 0
        assert not killed.__exit__(RuntimeError, RuntimeError("killed"), None)
        n_before = len(rebuilds)
        assert job.matches(batch_id) == _expected(job.plan, job.segments[: batch_id + 1], job.packet)
        assert len(rebuilds) == n_before + 1


def test_an_index_of_another_boot_is_built_again(
    job: Job, rebuilds: list[WorkerHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert job.matches() == job.expected
    monkeypatch.setattr(state_module, "_boot_id", lambda: "another-boot")
    for _ in range(2):
        assert job.matches() == job.expected
    assert len(rebuilds) == 2


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("left", [None, 0.0, 0.5, 1.0])
def test_a_missing_or_truncated_file_is_noticed_and_built_again(
    job: Job, rebuilds: list[WorkerHome], name: str, left: float | None
) -> None:
    assert job.matches() == job.expected
    path = _arrays(job) / f"{name}.array"
    if left is None:
        path.unlink()
    else:
        with path.open("r+b") as file:
            file.truncate(int(left * (_n_used(job, name) - 1)) * np.dtype(DTYPES[name]).itemsize)
    assert job.matches() == job.expected
    assert len(rebuilds) == 2


@pytest.mark.parametrize("name", DTYPES)
def test_a_file_that_was_cut_where_it_is_not_in_use_is_as_good_as_before(
    job: Job, rebuilds: list[WorkerHome], name: str
) -> None:
    assert job.matches() == job.expected
    with (_arrays(job) / f"{name}.array").open("r+b") as file:
        file.truncate(_n_used(job, name) * np.dtype(DTYPES[name]).itemsize)
    assert job.matches() == job.expected
    assert len(rebuilds) == 1


def _n_used(job: Job, name: str) -> int:
    index = GI2.open(SETTINGS.index_settings(job.plan), MappedStorage(_arrays(job)))
    return needed_sizes(index._arrays, job.plan.grid.n_cells).get(name, HEAD_SIZE)


@pytest.mark.parametrize(
    "mark", ["", "garbage", "boot", "boot x", "boot 1", "boot 1 2", "boot 1 0x1p0,0x1p0,x,0x1p0,3"]
)
def test_a_mark_that_makes_no_sense_is_not_trusted(job: Job, rebuilds: list[WorkerHome], mark: str) -> None:
    assert job.matches() == job.expected
    (_arrays(job).parent / "clean").write_text(mark.replace("boot", state_module._boot_id()))
    assert job.matches() == job.expected
    assert len(rebuilds) == 2


def test_a_snapshot_and_what_comes_after_it_give_the_same_as_the_whole_log(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    job.matches(batch_id=2)
    registrar = _restored(job, 6)
    live = registrar.registry.live_seqs()
    before = _n_bytes(job.state.log.directory)
    job.state.snapshot(5, registrar)
    assert _n_bytes(job.state.log.directory) < before
    assert [number for number, _ in job.state.log.read()] == [5, 6, 7]
    later = set(live.tolist()) | {
        seq for segment in job.segments[6:] for seq in segment.column("seq_from").to_pylist()
    }
    expected = [match for match in job.expected if match[2] in later]
    assert job.matches() == expected, "what ended up to the snapshot is gone, all else is there"
    assert len(rebuilds) == 2, "batches 3 to 5 are not in the log any more"
    restored, whole = job.state.restore_registrar(), _restored(job, EVERY_BATCH)
    np.testing.assert_array_equal(restored.registry.live_seqs(), whole.registry.live_seqs())
    assert restored.grid_ts.newest.n_live == whole.grid_ts.newest.n_live


def _restored(job: Job, n_segments: int) -> Registrar:
    registrar = Registrar(job.plan)
    registrar.restore(job.segments[:n_segments])
    return registrar


def test_a_worker_that_has_seen_the_snapshots_batch_keeps_its_index(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    job.matches(batch_id=5)
    job.state.snapshot(5, _restored(job, 6))
    assert job.matches() == job.expected
    assert len(rebuilds) == 1


def test_an_index_that_is_compacted_into_new_files_goes_on(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GI2, "should_compact", lambda self: True)
    for batch_id in range(EVERY_BATCH):
        found = job.matches(batch_id)
    assert found == job.expected
    assert sorted(path.name for path in _arrays(job).parent.iterdir()) == ["arrays", "clean", "lock"]
    monkeypatch.undo()
    assert job.matches() == job.expected


def test_tasks_read_the_indexes_that_the_registrar_wrote(job: Job) -> None:
    registrar = job.state.restore_registrar()
    registry = job.state.open_registry(registrar.registry_name)
    np.testing.assert_array_equal(registry.live_seqs(), registrar.registry.live_seqs())
    (version,) = registrar.routing.parts
    assert job.state.open_grid_t(version.plan, version.name).n_live == version.grid_t.n_live > 0
    job.state.drop_index(registrar.registry_name)
    with pytest.raises(StateError, match="cannot be mapped"):
        job.state.open_registry(registrar.registry_name)
    job.state.drop_index(version.name)
    with pytest.raises(StateError, match="cannot be mapped"):
        job.state.open_grid_t(version.plan, version.name)
    again = job.state.restore_registrar()
    np.testing.assert_array_equal(again.registry.live_seqs(), registrar.registry.live_seqs())


def test_a_state_is_opened_again_with_the_settings_it_was_made_with(job: Job) -> None:
    assert State.exists(job.state.directory)
    opened = State.open(job.state.directory, replace(SETTINGS, n_dispatchers=9, batch_events=1))
    np.testing.assert_array_equal(opened.plan().h1.cell_owner, job.plan.h1.cell_owner)
    assert not State.exists(job.state.directory / "nowhere")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_workers": 4}, "was made with n_workers=3; got 4"),
        ({"grid_bits": 6}, "was made with grid_bits=5; got 6"),
        ({"max_cells": 1}, "was made with max_cells=16; got 1"),
        ({"stop_words": ("the",)}, r"was made with stop_words=\(\); got \('the',\)"),
    ],
)
def test_settings_that_do_not_fit_a_state_are_an_error(
    job: Job, changed: dict[str, int], message: str
) -> None:
    with pytest.raises(StateError, match=message):
        State.open(job.state.directory, replace(SETTINGS, **changed))  # type: ignore[arg-type]


def test_stop_words_of_a_state_are_compared_by_what_they_are(tmp_path: Path) -> None:
    stopping = replace(SETTINGS, stop_words=("the", "a"))
    State.create(tmp_path, plan_for(random_stream(5, 1)), stopping)
    State.open(tmp_path, stopping)


@pytest.mark.parametrize("about", ["", "{", "[1]", "7", "null", '{"format": 99}', '{"format": 2}'])
def test_a_damaged_job_file_is_an_error(job: Job, about: str) -> None:
    (job.state.directory / "job.json").write_text(about)
    with pytest.raises(StateError):
        State.open(job.state.directory, SETTINGS)


def test_a_missing_state_or_plan_is_an_error(job: Job, tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"job\.json cannot be read"):
        State.open(tmp_path / "nowhere", SETTINGS)
    (job.state.directory / "plans" / "plan-000001.npz").unlink()
    with pytest.raises(StateError, match=r"plan-000001\.npz cannot be read"):
        State.open(job.state.directory, SETTINGS).plan()


_HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


def test_a_state_that_another_process_holds_is_an_error_until_that_ends_however_it_ends(job: Job) -> None:
    with job.state.locked():
        pass
    command = [sys.executable, "-c", _HOLD, str(job.state.directory / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StateError, match="another job is running on the state in"), job.state.locked():
            pytest.fail("two jobs on one state")
        holder.send_signal(signal.SIGKILL)
    with job.state.locked():
        pass


def test_the_last_seq_of_a_batch_and_the_one_before_are_known(job: Job) -> None:
    state = job.state
    assert state.last_seq(5) == BEFORE_ALL_SEQS
    state.record_progress(0, 10)
    state.record_progress(1, 25)
    state.record_progress(1, 25)
    assert (state.last_seq(-1), state.last_seq(0), state.last_seq(1), state.last_seq(9)) == (
        BEFORE_ALL_SEQS,
        10,
        25,
        25,
    )
    state.record_progress(4, 30)  # batches 2 and 3 had no events
    assert (state.last_seq(3), state.last_seq(4)) == (25, 30)
    progress = state.directory / "progress.json"
    assert set(json.loads(progress.read_text())) == {"3", "4"}
    progress.write_text("{")
    assert state.last_seq(4) == BEFORE_ALL_SEQS


@dataclass(slots=True)
class AdjustedJob:
    """A state whose log has moves, switches and unions, next to workers that never saw a disk."""

    deployment: Deployment
    state: State
    events: pa.RecordBatch

    def settings(self) -> IndexSettings:
        return SETTINGS.index_settings(self.deployment.registrar.plan)

    def process(self, batch_id: int, batch: pa.RecordBatch) -> None:
        segment = self.deployment.process(batch)
        for plan in self.deployment.plans.values():
            if not (self.state.directory / "plans" / f"plan-{plan.number:06}.npz").exists():
                self.state.add_plan(plan)
        self.state.log.append(batch_id, segment, self.deployment.registrar.plan_numbers)

    def assert_same_workers(self, batch_id: int) -> None:
        """See that the workers of the state store what the others do."""
        live = frozen(np.array(sorted(self.deployment.live()), np.int64))
        for like in self.deployment.workers:
            with self.state.worker(like.worker_id, self.settings(), batch_id, BEFORE_ALL_SEQS) as worker:
                for mine, others in zip(worker.index.stored(live), like.index.stored(live), strict=True):
                    np.testing.assert_array_equal(mine, others)
                if like.index.settings != self.settings():
                    like.index = like.index.counted_in(self.settings().counters)
                for name in ("subscriptions", "bytes"):
                    counted = worker.index.cell_counters()[name]
                    np.testing.assert_array_equal(counted, like.index.cell_counters()[name])


@pytest.fixture(params=[3, 11])
def adjusted(tmp_path: Path, request: pytest.FixtureRequest) -> AdjustedJob:
    plan = random_plan(random.Random(request.param))
    state = State.create(tmp_path / "state", plan, replace(SETTINGS, n_workers=plan.n_workers))
    return AdjustedJob(Deployment(plan), state, local_stream(160, request.param))


def test_workers_and_registrar_follow_a_log_with_adjustments_batch_by_batch(
    adjusted: AdjustedJob, rebuilds: list[WorkerHome]
) -> None:
    rng, deployment = random.Random(3), adjusted.deployment
    n_moves = 0
    for batch_id, batch in enumerate(batches_of(adjusted.events, 16)):
        deployment.disturb(rng)
        adjusted.process(batch_id, batch)
        n_moves += changes(deployment.segments[-1], MOVE).num_rows
        adjusted.assert_same_workers(batch_id)
        assert adjusted.state.routing() == deployment.registrar.plan_numbers
        restored = adjusted.state.restore_registrar()
        assert restored.plan_numbers == deployment.registrar.plan_numbers
        for version, like in zip(restored.routing.parts, deployment.registrar.routing.parts, strict=True):
            opened = adjusted.state.open_grid_t(version.plan, version.name)
            assert opened.n_live == version.grid_t.n_live == like.grid_t.n_live
    assert n_moves > 5
    assert len(rebuilds) == deployment.plan.n_workers, "only the first time, also where the grid changed"


def test_workers_catch_up_with_adjustments_from_a_snapshot_and_from_the_log(
    adjusted: AdjustedJob, rebuilds: list[WorkerHome]
) -> None:
    rng, deployment = random.Random(5), adjusted.deployment
    batches = batches_of(adjusted.events, 16)
    for batch_id, batch in enumerate(batches):
        deployment.disturb(rng)
        adjusted.process(batch_id, batch)
        if batch_id == 3:
            adjusted.assert_same_workers(batch_id)
        if batch_id in (2, 6):
            adjusted.state.snapshot(batch_id, deployment.registrar)
            assert adjusted.state.routing() == deployment.registrar.plan_numbers
    rebuilds.clear()
    adjusted.assert_same_workers(len(batches) - 1)
    assert len(rebuilds) == deployment.plan.n_workers, "what they had not seen was only left in the snapshot"
    restored = adjusted.state.restore_registrar()
    assert restored.registry.live_seqs().tolist() == sorted(deployment.live())
    assert restored.n_older() == deployment.registrar.n_older()
    adjusted.state.snapshot(len(batches) - 1, restored)
    shutil.rmtree(adjusted.state.directory / "index")
    adjusted.assert_same_workers(len(batches) - 1)


def test_an_index_whose_process_was_killed_while_it_was_recounted_is_built_again(
    adjusted: AdjustedJob, rebuilds: list[WorkerHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, state = adjusted.deployment, adjusted.state
    first, second, third = batches_of(adjusted.events, 60)
    adjusted.process(0, first)
    adjusted.assert_same_workers(0)
    renewed = random_plan(random.Random(9))
    deployment.switch(replace(renewed, grid=Grid.over((0.0, 0.0, 9.0, 9.0), 2)))
    adjusted.process(1, second)

    def killed(self: GI2, counters: Grid) -> GI2:
        self._arrays.cell_bytes[:] = 7
        raise KeyboardInterrupt

    monkeypatch.setattr(GI2, "counted_in", killed)
    n_before = len(rebuilds)
    with (
        pytest.raises(KeyboardInterrupt),
        state.worker(WORKER, adjusted.settings(), 1, BEFORE_ALL_SEQS),
    ):
        pytest.fail("it was killed")
    monkeypatch.undo()
    adjusted.process(2, third)
    adjusted.assert_same_workers(2)
    assert len(rebuilds) <= n_before + 1


_sides = st.floats(1e-9, 1e12)
_grids = st.builds(Grid, st.floats(-180, 180), st.floats(-90, 90), _sides, _sides, st.integers(0, 12))


@given(_grids)
def test_the_grid_of_a_mark_is_read_as_it_was_written(grid: Grid) -> None:
    assert state_module._grid_of(state_module._text_of(grid)) == grid
    assert len(state_module._text_of(grid).split()) == 1


def test_before_anything_was_decided_the_stream_is_routed_by_the_first_plan(tmp_path: Path) -> None:
    plan = random_plan(random.Random(1), number=7)
    state = State.create(tmp_path, plan, SETTINGS)
    assert state.routing() == Routing(7)
    assert state.plan().number == state.plan(7).number == 7
    assert state.restore_registrar().plan_numbers == state.routing()


def test_a_plan_comes_into_use_with_the_log_and_goes_when_the_log_does_not_name_it(job: Job) -> None:
    state, files = job.state, job.state.directory / "plans"
    renewed = replace(job.plan, number=2, partitioner="another")
    state.add_plan(renewed)
    assert state.plan().number == 1, "not yet"
    assert state.plan(2).partitioner == "another"
    two = Routing(2, 1, 50)
    state.log.append(EVERY_BATCH, empty(SEGMENT), two)
    assert state.plan().number == 2
    state.add_plan(replace(job.plan, number=3))
    state.drop_plans()
    assert sorted(path.name for path in files.iterdir()) == ["plan-000001.npz", "plan-000002.npz"]
    registrar = state.restore_registrar()
    assert [version.plan.number for version in registrar.routing.parts] == [2, 1]
    assert registrar.routing.switch_seq == 50
    state.log.append(EVERY_BATCH + 1, empty(SEGMENT), Routing(2))
    state.drop_plans()
    assert [path.name for path in files.iterdir()] == ["plan-000002.npz"]
    with pytest.raises(StateError, match=r"plan-000001\.npz cannot be read"):
        state.plan(1)


def test_a_plan_that_was_written_again_is_read_again(job: Job) -> None:
    assert job.state.plan().partitioner == job.plan.partitioner
    path = job.state.directory / "plans" / "plan-000001.npz"
    job.state.add_plan(replace(job.plan, partitioner="another"))
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert job.state.plan().partitioner == "another"


def test_indexes_of_a_job_that_was_killed_go_when_the_next_one_starts(job: Job) -> None:
    index = job.state.directory / "index"
    for name in ("registry-9", "routing-8", "worker-007"):
        (index / name).mkdir(parents=True)
    registrar = job.state.restore_registrar()
    names = {registrar.registry_name, *(version.name for version in registrar.routing.parts), "worker-007"}
    assert {path.name for path in index.iterdir()} == names
    job.state.drop_index("nothing-of-this-name")


def test_the_last_word_of_a_job_is_there_for_others_to_read(job: Job) -> None:
    assert job.state.read_status() is None
    job.state.write_status({"batch_id": 3})
    job.state.write_status({"batch_id": 4})
    assert State(job.state.directory).read_status() == {"batch_id": 4}
    for damage in ("", "{", "[1]", "7"):
        (job.state.directory / "status.json").write_text(damage)
        with pytest.raises(StateError, match=r"status\.json cannot be read"):
            job.state.read_status()


def test_a_job_is_running_while_it_holds_its_state(job: Job) -> None:
    assert not job.state.is_running()
    with job.state.locked():
        assert State(job.state.directory).is_running()
    assert not job.state.is_running()
    assert not State(job.state.directory).is_running(), "looking does not hold it"


def test_adjustments_are_kept_with_the_state(job: Job) -> None:
    assert job.state.adjustments.read() == []
    record = Adjustment("switch", 4, "now", "a test", 1, 2, (1.0, 2.0))
    job.state.adjustments.write(4, record)
    assert State(job.state.directory).adjustments.read() == [record]


def test_a_request_is_taken_once_however_often_it_was_made(tmp_path: Path) -> None:
    state = State(tmp_path)
    assert not state.take_request()
    state.request_repartition()
    State(tmp_path).request_repartition()
    assert state.take_request()
    assert not State(tmp_path).take_request()


def test_a_request_for_a_new_plan_is_taken_once_however_often_it_was_made(job: Job) -> None:
    assert not job.state.take_request()
    job.state.request_repartition()
    State(job.state.directory).request_repartition()
    assert job.state.take_request()
    assert not job.state.take_request()


def test_a_segment_that_a_rerun_adds_to_a_batch_without_any_is_not_missed(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    """A batch that changes nothing leaves no segment; run again, it may come with an adjustment before it."""
    last = job.state.log.directory / f"batch-{EVERY_BATCH - 1:012}.arrow"
    kept = last.read_bytes()
    last.unlink()
    assert job.matches(EVERY_BATCH - 1) == _expected(job.plan, job.segments[:-1], job.packet)
    last.write_bytes(kept)
    assert job.matches(EVERY_BATCH - 1) == job.expected
    assert len(rebuilds) == 1, "as it was begun, and never again"


def test_a_snapshot_after_batches_that_changed_nothing_does_not_cost_an_index(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    idle = EVERY_BATCH + 3
    assert job.matches(idle) == job.expected
    job.state.snapshot(idle, job.state.restore_registrar())
    begun = len(rebuilds)
    assert job.matches(idle + 1) == job.expected
    assert len(rebuilds) == begun
