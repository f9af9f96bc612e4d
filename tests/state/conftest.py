"""Jobs with a state, and a look at how often their workers' indexes are begun anew."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from engines.deployments import Deployment, local_stream, random_plan
from engines.streams import SETTINGS
from ps2stream.matching.index import GI2
from ps2stream.state.state import State
from ps2stream.state.worker_home import WorkerHome
from state.jobs import AdjustedJob, Job, job_at


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return job_at(State.at(tmp_path / "state"))


@pytest.fixture(params=[3, 11])
def adjusted(tmp_path: Path, request: pytest.FixtureRequest) -> AdjustedJob:
    plan = random_plan(random.Random(request.param))
    settings = replace(SETTINGS, n_workers=plan.n_workers)
    state = State.at(tmp_path / "state").create(plan, settings)
    return AdjustedJob(Deployment(plan), state, local_stream(160, request.param))


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
