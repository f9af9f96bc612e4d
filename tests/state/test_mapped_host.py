"""Whatever happens to a worker's files, it comes back with what the log says."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from engines.deployments import random_plan
from engines.streams import SETTINGS, batches_of
from ps2stream.arrays import MappedStorage
from ps2stream.errors import StateError
from ps2stream.matching.index import GI2
from ps2stream.matching.layout import DTYPES, HEAD_SIZE, needed_sizes
from ps2stream.model.space import Grid
from ps2stream.state import worker_home
from ps2stream.state.state import State
from ps2stream.state.worker_home import WorkerHome
from state.jobs import N_BATCHES, WORKER, AdjustedJob, Job, expected_matches


def test_a_worker_catches_up_with_the_log_batch_by_batch_or_at_once(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    for batch_id in range(N_BATCHES):
        found = job.matches(batch_id)
    assert found == job.expected
    assert len(rebuilds) == 1, "only the first time"
    again = State.at(job.state.host.directory)
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
    for batch_id in (3, 4, 7):
        killed = job.host(batch_id).lent()
        # Half of a change is in the files; the mark is what tells.
        killed.__enter__().index._arrays.postings[:] = 0
        assert not killed.__exit__(RuntimeError, RuntimeError("killed"), None)
        n_before = len(rebuilds)
        expected = expected_matches(job.plan, job.segments[: batch_id + 1], job.packet)
        assert job.matches(batch_id) == expected
        assert len(rebuilds) == n_before + 1


def test_an_index_of_another_boot_is_built_again(
    job: Job, rebuilds: list[WorkerHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert job.matches() == job.expected
    monkeypatch.setattr(worker_home, "boot_id", lambda: "another-boot")
    for _ in range(2):
        assert job.matches() == job.expected
    assert len(rebuilds) == 2


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("left", [None, 0.0, 0.5, 1.0])
def test_a_missing_or_truncated_file_is_noticed_and_built_again(
    job: Job, rebuilds: list[WorkerHome], name: str, left: float | None
) -> None:
    assert job.matches() == job.expected
    path = job.arrays / f"{name}.array"
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
    with (job.arrays / f"{name}.array").open("r+b") as file:
        file.truncate(_n_used(job, name) * np.dtype(DTYPES[name]).itemsize)
    assert job.matches() == job.expected
    assert len(rebuilds) == 1


def _n_used(job: Job, name: str) -> int:
    index = GI2.open(SETTINGS.index_settings(job.plan), MappedStorage(job.arrays))
    return needed_sizes(index._arrays, job.plan.grid.n_cells).get(name, HEAD_SIZE)


def test_a_worker_that_has_seen_the_snapshots_batch_keeps_its_index(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    job.matches(batch_id=5)
    job.state.snapshot(5, job.restored(6))
    assert job.matches() == job.expected
    assert len(rebuilds) == 1


def test_an_index_that_is_compacted_into_new_files_goes_on(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GI2, "should_compact", lambda self: True)
    for batch_id in range(N_BATCHES):
        found = job.matches(batch_id)
    assert found == job.expected
    assert sorted(path.name for path in job.arrays.parent.iterdir()) == ["arrays", "clean", "lock"]
    monkeypatch.undo()
    assert job.matches() == job.expected


def test_an_index_whose_process_was_killed_while_it_was_recounted_is_built_again(
    adjusted: AdjustedJob, rebuilds: list[WorkerHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = batches_of(adjusted.events, 60)
    adjusted.process(0, first)
    adjusted.assert_same_workers(0)
    renewed = random_plan(random.Random(9))
    adjusted.deployment.switch(replace(renewed, grid=Grid.over((0.0, 0.0, 9.0, 9.0), 2)))
    adjusted.process(1, second)

    def killed(self: GI2, counters: Grid) -> GI2:
        self._arrays.cell_bytes[:] = 7
        raise KeyboardInterrupt

    n_before = len(rebuilds)
    with monkeypatch.context() as patch:
        patch.setattr(GI2, "counted_in", killed)
        with pytest.raises(KeyboardInterrupt):
            adjusted.host(WORKER, 1).apply()
    adjusted.process(2, third)
    adjusted.assert_same_workers(2)
    assert len(rebuilds) <= n_before + 1


def test_a_worker_does_not_see_a_batch_that_is_not_decided(job: Job, rebuilds: list[WorkerHome]) -> None:
    """It could still come with an adjustment before it, which an index that has seen it would lack."""
    assert job.matches() == job.expected
    for call in (job.host(N_BATCHES).apply, lambda: job.matches(N_BATCHES)):
        with pytest.raises(StateError, match=rf"batch {N_BATCHES} must be decided .* batch {N_BATCHES - 1}"):
            call()
    job.state.ledger.decide(N_BATCHES, None, job.state.routing())
    assert job.matches(N_BATCHES) == job.expected
    assert len(rebuilds) == 1


def test_a_segment_that_comes_after_batches_without_any_is_not_missed(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    log, routing = job.state.store.under("log"), job.state.routing()
    log.delete(f"batch-{N_BATCHES - 1:012}.arrow")
    for batch_id in (N_BATCHES - 1, N_BATCHES):
        job.state.ledger.decide(batch_id, None, routing)
        assert job.matches(batch_id) == expected_matches(job.plan, job.segments[:-1], job.packet)
    job.state.ledger.decide(N_BATCHES + 1, job.segments[-1], routing)
    assert job.matches(N_BATCHES + 1) == job.expected
    assert len(rebuilds) == 1, "as it was begun, and never again"


def test_a_snapshot_after_batches_that_changed_nothing_does_not_cost_an_index(
    job: Job, rebuilds: list[WorkerHome]
) -> None:
    idle = N_BATCHES + 3
    job.state.ledger.decide(idle, None, job.state.routing())
    assert job.matches(idle) == job.expected
    job.state.snapshot(idle, job.state.restore_registrar())
    begun = len(rebuilds)
    job.state.ledger.decide(idle + 1, None, job.state.routing())
    assert job.matches(idle + 1) == job.expected
    assert len(rebuilds) == begun
