"""Durable: a job that was stopped, robbed of its caches or cut off ends as an unbroken one does."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from laws.chaos import Chaos
from laws.engines import JobHome, one_batch, sorted_outcome
from ps2stream.config import Settings
from ps2stream.engines.durable_job import DurableJob
from ps2stream.journal import Journal
from ps2stream.state.state import State
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

SETTINGS = Settings(n_workers=3, n_dispatchers=2, batch_events=200)

#: So few updates that every batch or two leaves a snapshot.
OFTEN = 20


def nothing(job_home: JobHome) -> None:
    """Leave all as it is."""


def lose_indexes(job_home: JobHome) -> None:
    shutil.rmtree(job_home.state / "index")


def damage_indexes(job_home: JobHome) -> None:
    """Cut one worker's largest file short, and take a file from another."""
    index = job_home.state / "index"
    path = max(index.rglob("worker-001/**/*.array"), key=lambda path: path.stat().st_size)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 1)
    next(index.rglob("worker-002/**/*.array")).unlink()


def assert_as_the_oracle_says(job_home: JobHome, events: pa.Table, late: list[oracle.Rejection]) -> None:
    expected = sorted_outcome(oracle.run(events))
    assert job_home.outcome(late) == expected
    assert expected.matches
    assert expected.rejected


def remove(directory: Path, pattern: str) -> None:
    found = list(directory.glob(pattern))
    assert found
    for path in found:
        path.unlink()


def unfinish(job_home: JobHome) -> int:
    """Take back that the newest batch is finished; return its number."""
    store = State.at(job_home.state).store
    notes = json.loads(bytes(store.get("ledger.json")))
    last = max(map(int, notes["last_seqs"]))
    del notes["last_seqs"][str(last)]
    store.put("ledger.json", json.dumps(notes).encode())
    return last


@pytest.mark.parametrize(
    "happens", [pytest.param(nothing, marks=pytest.mark.slow), lose_indexes, damage_indexes]
)
def test_a_stopped_job_goes_on_where_it_was(
    spark: SparkSession, job_home: JobHome, happens: Callable[[JobHome], None]
) -> None:
    events = random_events(1_000, seed=41, publication_share=0.5)
    late = job_home.publish(events, packet_events=50)
    job_home.run_briefly(spark, SETTINGS, n_batches=2, snapshot_every=OFTEN)
    happens(job_home)
    batches = job_home.drain(spark, SETTINGS, snapshot_every=OFTEN)
    assert [done.batch_id for done in batches] == list(range(batches[0].batch_id, batches[-1].batch_id + 1))
    # Two batches were done, and the third may have been, when the job stopped; none of those runs again.
    assert batches[0].batch_id in (2, 3)
    assert list((job_home.state / "log").glob("snapshot-*"))
    assert_as_the_oracle_says(job_home, events, late)


@pytest.fixture(params=["embedded", "microbatch"])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    return request.getfixturevalue("spark") if request.param == "microbatch" else None


def test_events_that_come_while_the_job_is_down_are_not_missed_and_old_ones_are_pruned(
    session: SparkSession | None, job_home: JobHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruning_often = functools.partial(DurableJob, prune_every=50)
    monkeypatch.setattr("ps2stream.engines.stream_start.DurableJob", pruning_often)
    events = random_events(900, seed=42)
    late = []
    for start in (0, 300, 600):
        late = job_home.publish(events.slice(0, start + 300), packet_events=50)
        job_home.drain(session, SETTINGS, snapshot_every=OFTEN, prune=True)
    with Journal.open(job_home.journal) as journal:
        assert journal.oldest() > 1
    assert_as_the_oracle_says(job_home, events, late)


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param("the end", marks=pytest.mark.slow),
        "the matches",
        pytest.param("the indexes", marks=pytest.mark.slow),
        "the decisions",
    ],
)
def test_a_batch_that_was_cut_off_is_run_again_to_the_same_end(
    spark: SparkSession, job_home: JobHome, lost: str
) -> None:
    """Take away what a crash at some point of the last batch would have kept from being written."""
    events = random_events(700, seed=43, publication_share=0.5)
    late = job_home.publish(events, packet_events=50)
    job_home.drain(spark, SETTINGS, snapshot_every=OFTEN)
    last = unfinish(job_home)
    if lost != "the end":
        remove(job_home.out / "matches", f"batch-{last:012}-*")
    if lost in ("the indexes", "the decisions"):
        lose_indexes(job_home)
    if lost == "the decisions":
        (job_home.state / "log" / f"batch-{last:012}.arrow").unlink()
        remove(job_home.out / "rejected", f"batch-{last:012}-*")
    batches = job_home.drain(spark, SETTINGS, snapshot_every=OFTEN)
    assert [done.batch_id for done in batches] == [last]
    assert_as_the_oracle_says(job_home, events, late)


def test_a_batch_without_updates_is_not_routed_otherwise_when_it_runs_again(
    spark: SparkSession, job_home: JobHome
) -> None:
    """Each worker's matches are a file: under another plan some would lie in the files of two."""
    events = random_events(700, seed=44, publication_share=0.5)
    is_publish = [op == "publish" for op in events["op"].to_pylist()]
    last = max(row for row in range(600) if not is_publish[row]) + 1
    only_publications = [row for row in range(last, events.num_rows) if is_publish[row]]
    events = events.take([*range(last), *only_publications])
    job_home.publish(events.slice(0, last), packet_events=50)
    job_home.drain(spark, SETTINGS)
    late = job_home.publish(events, packet_events=500)
    (done,) = job_home.drain(spark, SETTINGS)
    assert done.n_updates == 0
    assert unfinish(job_home) == done.batch_id
    chaos = Chaos(3, one_batch(events), share=1.0)
    (again,) = job_home.drain(spark, SETTINGS, controller=chaos)
    assert again.batch_id == done.batch_id
    assert chaos.made == {}
    assert job_home.outcome(late) == sorted_outcome(oracle.run(events))
