"""What is read while a job writes is read again when something came in between."""

from __future__ import annotations

from contextlib import closing

import pytest

from cli.jobs import Job
from ps2stream.config import Settings
from ps2stream.deployment.deployment import Deployment
from ps2stream.deployment.home import Home
from ps2stream.deployment.settled import settled
from ps2stream.errors import StateError
from ps2stream.model.space import Region
from ps2stream.model.subscriptions import Subscription
from ps2stream.state.state import State

SETTINGS = Settings(n_workers=2)


@pytest.fixture
def job(any_home: Home) -> Job:
    region = Region(0.0, 0.0, 1.0, 1.0)
    Deployment(any_home.directory).subscribe([Subscription(name, "rain", region) for name in ("a", "b")])
    job = Job(any_home, SETTINGS)
    job.process()
    return job


def test_a_snapshot_in_between_makes_it_read_again(any_home: Home, job: Job) -> None:
    bases = []

    def read(state: State) -> int:
        bases.append(state.log.base())
        if len(bases) == 1:
            job.snapshot()
            raise StateError("a file has gone")
        return len(bases)

    assert settled(any_home, None, read) == 2
    assert bases == [-1, job.position]


def test_a_pruning_in_between_makes_it_read_again(any_home: Home, job: Job) -> None:
    Deployment(any_home.directory).unsubscribe("b")
    job.process()
    with closing(any_home.events()) as events:
        n_reads = 0

        def read(state: State) -> int:
            nonlocal n_reads
            n_reads += 1
            if n_reads == 1:
                job.prune()
            return n_reads

        assert settled(any_home, events, read) == 2


@pytest.mark.parametrize("any_home", ["in a directory", "on s3"], indirect=True)
def test_another_epoch_in_between_makes_it_read_as_its_driver_has_it(any_home: Home, job: Job) -> None:
    epochs = []

    def read(state: State) -> int:
        epochs.append(state.epoch)
        if len(epochs) == 1:
            job.start_again()
        return state.epoch

    assert settled(any_home, None, read) == 2
    assert epochs == [1, 2]


@pytest.mark.usefixtures("job")
def test_a_failure_that_nothing_explains_is_raised(any_home: Home) -> None:
    def damaged(state: State) -> None:
        raise StateError("damaged")

    with pytest.raises(StateError, match="damaged"):
        settled(any_home, None, damaged)
