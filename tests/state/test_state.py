"""A state is put together of its parts: what is decided comes back from the log, wherever the log is."""

from __future__ import annotations

import pickle
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engines.deployments import random_plan
from engines.streams import SETTINGS, batches_of, plan_for, random_stream
from ps2stream.balance.adjustments import Adjustment
from ps2stream.errors import StateError
from ps2stream.model.schemas import empty
from ps2stream.registry.segments import MOVE, SEGMENT, changes
from ps2stream.roles.registrar import Registrar
from ps2stream.routing.routing import Routing
from ps2stream.state.host_files import HostFiles
from ps2stream.state.state import State
from ps2stream.state.worker_home import WorkerHome
from ps2stream.store.contract import delete_all
from ps2stream.store.memory import MemoryStore
from state.drivers import Claim
from state.jobs import N_BATCHES, AdjustedJob, Job, job_at


def test_a_state_is_opened_again_with_the_settings_it_was_made_with(job: Job) -> None:
    opened = State.at(job.state.host.directory).open(replace(SETTINGS, n_dispatchers=9, batch_events=1))
    np.testing.assert_array_equal(opened.plan().h1.cell_owner, job.plan.h1.cell_owner)
    with pytest.raises(StateError, match="was made with n_workers=3; got 4"):
        opened.open(replace(SETTINGS, n_workers=4))
    with pytest.raises(StateError, match=r"there is a state in .* already"):
        opened.create(job.plan, SETTINGS)


def test_a_state_in_any_store_does_the_same(tmp_path: Path) -> None:
    """Only what can be made again is on the disk of the host."""
    job = job_at(State(MemoryStore(), HostFiles(tmp_path)))
    assert job.matches(3)
    job.state.snapshot(5, job.restored(6))
    assert job.matches() == [match for match in job.expected if match in job.matches()]
    shutil.rmtree(tmp_path)
    assert job.matches()
    restored, whole = job.state.restore_registrar(), job.restored(N_BATCHES)
    np.testing.assert_array_equal(restored.registry.live_seqs(), whole.registry.live_seqs())
    assert {path.name for path in tmp_path.iterdir()} == {"index"}


def test_a_state_that_is_sent_to_another_process_is_the_same_state(job: Job) -> None:
    sent = pickle.loads(pickle.dumps(job.state))
    assert sent == job.state
    assert job.matches(state=sent) == job.expected


def test_before_anything_was_decided_the_stream_is_routed_by_the_first_plan(tmp_path: Path) -> None:
    plan = random_plan(random.Random(1), number=7)
    state = State.at(tmp_path).create(plan, SETTINGS)
    assert state.routing() == Routing(7)
    assert state.plan().number == state.plans.get(7).number == 7
    assert state.restore_registrar().plan_numbers == state.routing()


def test_a_plan_comes_into_use_with_the_log_and_goes_when_the_log_does_not_name_it(job: Job) -> None:
    state = job.state
    renewed = replace(job.plan, number=2, partitioner="another")
    state.plans.add(renewed)
    assert state.plan().number == 1, "not yet"
    assert state.plans.get(2).partitioner == "another"
    two = Routing(2, 1, 50)
    state.ledger.decide(N_BATCHES, empty(SEGMENT), two)
    assert state.plan().number == 2
    state.plans.add(replace(job.plan, number=3))
    state.drop_plans()
    assert state.plans.store.list() == ["plan-000001.npz", "plan-000002.npz"]
    registrar = state.restore_registrar()
    assert [version.plan.number for version in registrar.routing.parts] == [2, 1]
    assert registrar.routing.switch_seq == 50
    state.ledger.decide(N_BATCHES + 1, empty(SEGMENT), Routing(2))
    state.drop_plans()
    assert state.plans.store.list() == ["plan-000002.npz"]


def test_a_snapshot_of_nothing_is_a_snapshot(tmp_path: Path) -> None:
    plan = plan_for(random_stream(20, 1))
    state = State.at(tmp_path / "state").create(plan, SETTINGS)
    state.snapshot(3, Registrar(plan))
    assert [(number, segment.num_rows) for number, segment in state.log.read()] == [(3, 0)]
    assert state.routing() == Registrar(plan).plan_numbers


def test_a_snapshot_and_what_comes_after_it_give_the_same_as_the_whole_log(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    job.matches(batch_id=2)
    registrar = job.restored(6)
    live = registrar.registry.live_seqs()
    before = _n_bytes(job.state)
    job.state.snapshot(5, registrar)
    assert _n_bytes(job.state) < before
    assert [number for number, _ in job.state.log.read()] == [5, 6, 7]
    later = set(live.tolist()) | {
        seq for segment in job.segments[6:] for seq in segment.column("seq_from").to_pylist()
    }
    expected = [match for match in job.expected if match[2] in later]
    assert job.matches() == expected, "what ended up to the snapshot is gone, all else is there"
    assert len(rebuilds) == 2, "batches 3 to 5 are not in the log any more"
    restored, whole = job.state.restore_registrar(), job.restored(N_BATCHES)
    np.testing.assert_array_equal(restored.registry.live_seqs(), whole.registry.live_seqs())
    assert restored.grid_ts.newest.n_live == whole.grid_ts.newest.n_live


def _n_bytes(state: State) -> int:
    log = state.store.under("log")
    return sum(len(log.get(key)) for key in log.list())


def test_tasks_read_the_indexes_that_the_registrar_wrote(job: Job) -> None:
    registrar = job.state.restore_registrar()
    registry = job.state.open_registry(registrar.registry_name)
    np.testing.assert_array_equal(registry.live_seqs(), registrar.registry.live_seqs())
    (version,) = registrar.routing.parts
    assert job.state.open_grid_t(version.plan, version.name).n_live == version.grid_t.n_live > 0
    job.state.host.drop(registrar.registry_name)
    with pytest.raises(StateError, match="cannot be mapped"):
        job.state.open_registry(registrar.registry_name)
    job.state.host.drop(version.name)
    with pytest.raises(StateError, match="cannot be mapped"):
        job.state.open_grid_t(version.plan, version.name)
    again = job.state.restore_registrar()
    np.testing.assert_array_equal(again.registry.live_seqs(), registrar.registry.live_seqs())


def test_indexes_of_a_job_that_was_killed_go_when_the_next_one_starts(job: Job) -> None:
    index = job.state.host.directory / "index"
    for name in ("registry-9", "routing-8", "worker-007"):
        (index / name).mkdir(parents=True)
    registrar = job.state.restore_registrar()
    names = {registrar.registry_name, *(version.name for version in registrar.routing.parts), "worker-007"}
    assert {path.name for path in index.iterdir()} == names
    job.state.host.drop("nothing-of-this-name")


def test_what_killed_writers_left_goes_when_the_next_job_starts(job: Job) -> None:
    directory = job.state.host.directory
    before = job.state.store.list()
    names = ["log/.batch-9.arrow", "plans/.plan-2.npz", "adjustments/.batch-9.json", ".ledger.json"]
    halves = [directory / f"{name}.99-7.tmp" for name in names]
    for half in halves:
        half.parent.mkdir(exist_ok=True)
        half.write_bytes(b"half of")
    assert job.state.store.list() == before
    job.state.sweep()
    assert not any(half.exists() for half in halves)
    assert job.state.store.list() == before


def test_adjustments_are_kept_with_the_state(job: Job) -> None:
    assert job.state.adjustments.read() == []
    record = Adjustment("switch", 4, "now", "a test", 1, 2, (1.0, 2.0))
    job.state.adjustments.write(4, record)
    assert State.at(job.state.host.directory).adjustments.read() == [record]


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
    shutil.rmtree(adjusted.state.host.directory / "index")
    adjusted.assert_same_workers(len(batches) - 1)


def test_indexes_of_a_start_are_not_found_by_the_names_of_an_earlier_one(job: Job) -> None:
    """A task that the earlier start left behind would read one that is not whole yet."""
    before = job.state.restore_registrar()
    after = job.state.restore_registrar()
    names = [registrar.registry_name for registrar in (before, after)]
    assert names[0] != names[1]
    assert before.routing.newest.name != after.routing.newest.name
    with pytest.raises(StateError):
        job.state.open_registry(names[0])
    assert job.state.open_registry(names[1]).n_live == after.registry.n_live


def test_a_job_whose_state_is_where_one_was_that_is_gone_finds_nothing_of_that_on_its_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files have the same names: epochs and batches begin anew."""
    monkeypatch.setenv("PS2STREAM_LOCAL_DIR", str(tmp_path))
    store, seen = MemoryStore(), []
    for seed in (7, 8):
        state = State.among_hosts(store).taken_over(Claim(store))  # type: ignore[arg-type]
        job = job_at(state, seed)
        opened = state.open(SETTINGS)
        assert job.matches(state=opened.told(N_BATCHES - 1).here()) == job.expected
        seen.append((job.expected, store.list()))
        delete_all(store)
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] == seen[1][1]
