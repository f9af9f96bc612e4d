"""A worker that one process keeps finds what any other finds, also where others were at its files."""

from __future__ import annotations

import numpy as np
import pytest

from engines.streams import SETTINGS, matches_of
from ps2stream.matching.index import GI2
from ps2stream.registry.log import SubscriptionLog
from ps2stream.roles.worker_host import Standing
from ps2stream.state.kept_host import KeptHost
from ps2stream.state.worker_home import WorkerHome
from state.jobs import N_BATCHES, WORKER, Job, Matches, expected_matches


class Kept:
    """A kept host that is handed the segments of a job."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.host = KeptHost(WORKER, job.state, self._at(-1))

    def _at(self, batch_id: int) -> Standing:
        return Standing(batch_id, SETTINGS.index_settings(self._job.plan))

    def take(self, batch_id: int) -> None:
        self.host.take(batch_id, self._job.segments[batch_id])
        self.host.stand(self._at(batch_id))

    def matches(self) -> Matches:
        (found,) = self.host.match([self._job.packet]).found
        return matches_of(found)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[WorkerHome]:
    """Tell when an index is opened."""
    homes: list[WorkerHome] = []
    original = WorkerHome.open

    def open_index(home: WorkerHome, *settings: object) -> object:
        homes.append(home)
        return original(home, *settings)  # type: ignore[arg-type]

    monkeypatch.setattr(WorkerHome, "open", open_index)
    return homes


def up_to(job: Job, batch_id: int) -> Matches:
    return expected_matches(job.plan, job.segments[: batch_id + 1], job.packet)


def test_it_is_opened_once_and_reads_no_log_from_then_on(
    job: Job, opened: list[WorkerHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(job)
    kept.take(0)
    assert kept.matches() == up_to(job, 0)
    monkeypatch.setattr(SubscriptionLog, "_files", lambda log: pytest.fail("somebody lists the log"))
    for batch_id in range(1, N_BATCHES):
        kept.take(batch_id)
        assert kept.matches() == up_to(job, batch_id)
    assert len(opened) == 1


def test_what_another_process_did_in_between_is_seen(
    job: Job, opened: list[WorkerHome], rebuilds: list[WorkerHome]
) -> None:
    kept = Kept(job)
    for batch_id in range(3):
        kept.take(batch_id)
        kept.matches()
    assert job.matches(4) == up_to(job, 4)  # a task of Spark
    n_opened = len(opened)
    for batch_id in range(3, N_BATCHES):
        kept.take(batch_id)
    assert kept.matches() == job.expected
    assert len(opened) == n_opened + 1
    assert len(rebuilds) == 1, "the files are good"
    assert job.matches() == job.expected


def test_a_failure_amid_a_batch_costs_the_index_and_nothing_else(
    job: Job, rebuilds: list[WorkerHome], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(job)
    for batch_id in range(N_BATCHES):
        kept.take(batch_id)
    kept.matches()
    with monkeypatch.context() as patch:
        patch.setattr(GI2, "probe", lambda *of: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            kept.matches()
    assert kept.matches() == job.expected
    assert len(rebuilds) == 2


def test_loads_are_of_all_batches_since_they_were_asked_for(job: Job) -> None:
    kept = Kept(job)
    for batch_id in range(N_BATCHES):
        kept.take(batch_id)
    kept.matches()
    reports = [kept.host.match([job.packet]).report for _ in range(2)]
    served = kept.host.match([job.packet], with_loads=True)
    n_publications = int(np.asarray(served.loads.column("publications")).sum())
    assert n_publications == 4 * served.report.n_publications > 0
    assert all(report.n_publications == served.report.n_publications for report in reports)
    assert all(report.n_candidates == served.report.n_candidates > 0 for report in reports)
    again = kept.host.match([job.packet], with_loads=True).loads
    assert int(np.asarray(again.column("publications")).sum()) == served.report.n_publications
