"""The real-time engine: roles on Spark with brokers between them deliver what the oracle says.

Jobs run in processes of their own, where they can be killed, and where Spark has a slot for each role.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engines.spark.faults.drivers import Drivers
from engines.spark.faults.role_feeds import ArrivalFeed, GivenFeed, RoleFeed
from engines.spark.faults.roles_campaign import SCRIPT, Progress
from engines.spark.processes import kill
from ps2stream.config import Settings
from ps2stream.engines.held_state import held_state
from ps2stream.engines.spark import realtime
from ps2stream.engines.spark.realtime import RealtimeOptions, realtime_stream
from ps2stream.errors import ConfigError, StateError
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.topics import Topics
from ps2stream.partitioning import PARTITIONERS
from ps2stream.partitioning.plan import Plan
from ps2stream.resident.idleness import RolesIdleness


def nobody() -> None:
    """Let nobody tend to drivers: none of them ends."""


@contextlib.contextmanager
def running(
    topics: Topics,
    directory: Path,
    order: str,
    n_workers: int,
    n_dispatchers: int,
    partitioner: str = "hybrid",
) -> Iterator[Drivers]:
    """Run roles while the context lasts; those of a next one go on where these were stopped."""
    arguments = [str(directory / "where"), "7", topics.kafka.servers, topics.prefix, order]
    arguments += [str(n_workers), str(n_dispatchers), partitioner]
    drivers = Drivers(arguments, directory / f"{n_workers}-{n_dispatchers}", SCRIPT)
    try:
        yield drivers
        drivers.current.finish()
        assert drivers.current.wait() == 0, drivers.heard.ends
    finally:
        drivers.end()


def process_all(topics: RoleTopics, feed: RoleFeed) -> None:
    feed.stop()
    idleness, progress = RolesIdleness(topics), Progress(topics)
    while not idleness.is_idle():
        progress.look(nobody)


@pytest.mark.parametrize("order", ["given", pytest.param("arrival", marks=pytest.mark.slow)])
def test_every_match_comes_once_though_all_roles_die_and_dispatchers_become_more(
    topics: Topics, tmp_path: Path, order: str
) -> None:
    feed: RoleFeed = (GivenFeed if order == "given" else ArrivalFeed)(topics, 3)
    role_topics = RoleTopics(topics, 2)
    role_topics.create(1)
    progress = Progress(role_topics)
    with running(topics, tmp_path, order, 2, 1) as drivers:
        feed.start()
        progress.wait(nobody)
        for pid in drivers.current.task_processes():
            kill(pid)
        progress.wait(nobody)
    with running(topics, tmp_path, order, 2, 3):
        progress.wait(nobody)
        process_all(role_topics, feed)
    found = feed.verdict()
    assert found["as_the_oracle"], found
    assert found["n_matches"] > 50


@pytest.mark.slow
@pytest.mark.parametrize("partitioner", list(PARTITIONERS))
@pytest.mark.parametrize(("n_workers", "n_dispatchers"), [(1, 1), (4, 2), (8, 3)])
def test_a_replay_gives_what_the_oracle_says_for_any_plan_and_number_of_roles(
    topics: Topics, tmp_path: Path, partitioner: str, n_workers: int, n_dispatchers: int
) -> None:
    feed = GivenFeed(topics, n_workers)
    role_topics = RoleTopics(topics, n_workers)
    role_topics.create(n_dispatchers)
    with running(topics, tmp_path, "given", n_workers, n_dispatchers, partitioner):
        feed.start()
        for _ in range(20):
            Progress(role_topics).wait(nobody)
        process_all(role_topics, feed)
    found = feed.verdict()
    assert found["as_the_oracle"], found


def no_plan() -> Plan:
    pytest.fail("nothing must come so far")


def test_a_second_driver_on_a_state_is_refused(
    spark: SparkSession, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The session of tests has too few, which would be told first.
    monkeypatch.setattr(realtime, "_need_slots", lambda spark, settings: None)
    settings = Settings(n_workers=1, n_dispatchers=1)
    refused = pytest.raises(StateError, match="another job is running on the state")
    with held_state(tmp_path / "state", on_cluster=False) as held:
        held.start()
        with refused, realtime_stream(spark, topics, tmp_path / "state", settings, RealtimeOptions(no_plan)):
            pass


def test_roles_that_have_no_slot_are_refused(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    settings = Settings(n_workers=4, n_dispatchers=2)
    refused = pytest.raises(ConfigError, match=r"4 workers need 7; local\[2,4\] has 2")
    with refused, realtime_stream(spark, topics, tmp_path / "state", settings, RealtimeOptions(no_plan)):
        pass
