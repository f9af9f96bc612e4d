"""The commands on topics of Kafka do what they do on a journal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cli.conftest import Ran, Run
from ps2stream.cli import exit_codes
from ps2stream.cli.options.home import PREFIX
from ps2stream.cli.options.kafka import KAFKA
from ps2stream.config import Settings
from ps2stream.deployment.deployment import Deployment
from ps2stream.deployment.home import Home
from ps2stream.engines.spark.kafka_stream import kafka_stream
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.topics import Topics
from ps2stream.model.matches import Match
from waiting import HANG_S

MUNICH = "11.3,48.0,11.8,48.3"
POINT = {"lat": 48.14, "lon": 11.57}


@pytest.fixture
def on_kafka(home: Home, topics: Topics, run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv(KAFKA, topics.kafka.servers)
    monkeypatch.setenv(PREFIX, topics.prefix)
    return run


def found(ran: Ran) -> list[Match]:
    return sorted(Match(**row) for row in ran.json())


def test_a_deployment_from_subscribing_to_matches(
    spark: SparkSession, on_kafka: Run, home: Home, topics: Topics, lines: Callable[..., str]
) -> None:
    run = on_kafka
    assert "no matches yet in the topics" in run("matches").err
    assert run("subscribe", "fires", "fire AND smoke", "--region", MUNICH).out == "subscribed 'fires'\n"
    # Seen at once by those who ask, with the seq that it is going to get.
    assert [row["id"] for row in run("subscriptions", "--json").json()] == ["fires"]
    published = run(
        "publish",
        "--json",
        "--file",
        lines({"id": "p1", **POINT, "text": "Smoke and #fire"}, {"id": "p2", **POINT, "text": 7}),
    )
    assert published.code == 1
    assert [row.get("id") for row in published.json()] == [None, "p1"]
    settings = Settings(n_workers=2, n_dispatchers=2)
    with kafka_stream(spark, topics, home.state, settings) as stream:
        stream.process_all_available()
        (match,) = found(run("matches", "--json"))
        assert (match.subscription_id, match.publication_id) == ("fires", "p1")
        assert run("unsubscribe", "fires", "--json").json() == [{"id": "fires", "seq": None}]
        assert run("unsubscribe", "fires").code == 1
        assert run("subscriptions").out == ""
        run("subscribe", "fires", "fire", "--region", MUNICH)
        run("publish", "--file", lines({"id": "p3", **POINT, "text": "fire"}))
        stream.process_all_available()
        assert '"running": true' in run("status", "--json").out
    first, second = found(run("matches", "--json"))
    assert (first, second.publication_id) == (match, "p3")
    assert second.subscription_seq > first.publication_seq
    (row,) = run(
        "matches", "--subscription", "fires", "--since", str(second.publication_seq), "--json", "--text"
    ).json()
    assert row["text"] == "fire"
    # Each publication met the version of its time, which only the topics still know of.
    explained = [
        run("explain", "--publication", name, "--subscription", "fires", "--json") for name in ("p1", "p3")
    ]
    assert [ran.code for ran in explained] == [0, 0]
    versions = [ran.json()[0]["subscription"] for ran in explained]
    assert [version["expression"] for version in versions] == ["fire AND smoke", "fire"]
    (live,) = run("subscriptions", "--json").json()
    assert live["since"] == second.subscription_seq


def test_topics_that_are_not_there_are_told_by_readers_and_made_by_writers(
    home: Home, kafka: Kafka, run: Run
) -> None:
    where = ("--kafka", kafka.servers, "--topics", "test-made-by-a-command")
    topics = Topics(kafka, "test-made-by-a-command")
    for command in (("subscriptions",), ("matches",), ("status",)):
        ran = run(*command, *where)
        assert ran.code == exit_codes.FAILED
        assert "there is no topic test-made-by-a-command.updates" in ran.err
    try:
        run("subscribe", "fires", "fire", "--region", MUNICH, *where)
        assert [row["id"] for row in run("subscriptions", "--json", *where).json()] == ["fires"]
        assert "no job was started" in run("status", *where).err
        deployment = Deployment.on_kafka(kafka.servers, prefix=topics.prefix, home=home.directory)
        assert deployment.subscriptions().column("id").to_pylist() == ["fires"]
        assert deployment.publish({"id": "p", **POINT, "text": "fire"}).seqs == (None,)
    finally:
        topics.delete()


def test_a_home_that_is_named_has_a_journal_whatever_the_environment_says(
    tmp_path: Path, on_kafka: Run
) -> None:
    home = str(tmp_path / "other")
    assert on_kafka("subscribe", "here", "fire", "--region", MUNICH, "--home", home).out.endswith(
        "at seq 1\n"
    )
    assert (tmp_path / "other" / "journal").is_dir()
    assert on_kafka("subscriptions").out == ""


@pytest.mark.parametrize("option", ["--topics", "--kafka-properties"])
def test_what_belongs_to_kafka_needs_brokers(run: Run, option: str) -> None:
    ran = run("subscriptions", option, "x")
    assert (ran.code, f"{option} needs --kafka" in ran.err) == (2, True)


def test_a_broker_that_is_not_there_is_told_in_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ps2stream.kafka.topics.PATIENCE_S", 0.5)
    ran = run("subscriptions", "--kafka", "127.0.0.1:1")
    assert ran.code == exit_codes.FAILED
    assert ran.err.startswith("ps2stream: cannot look for topic ps2stream.updates at Kafka 127.0.0.1:1: ")
    assert ran.err.count("\n") == 1


@pytest.mark.slow
def test_run_processes_topics_until_they_are_idle(topics: Topics, tmp_path: Path) -> None:
    environment = {**os.environ, KAFKA: topics.kafka.servers, PREFIX: topics.prefix}
    deployment = Deployment.on_kafka(topics.kafka.servers, prefix=topics.prefix, home=tmp_path)
    region = [float(each) for each in MUNICH.split(",")]
    deployment.subscribe({"id": "fires", "expression": "fire", "region": region})
    deployment.publish([{"id": f"p{number}", **POINT, "text": "fire"} for number in range(20)])
    command = [sys.executable, "-m", "ps2stream", "run", "--until-idle", "--workers", "2", "--json"]
    done = subprocess.run(
        [*command, "--match-format", "json"],
        env={**environment, "PS2STREAM_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {match["publication_id"] for match in deployment.matches().to_pylist()} == {
        f"p{number}" for number in range(20)
    }
    assert len(deployment.matches()) == 20
    job = deployment.board()["job"]
    assert (job["counters"]["publications"], job["counters"]["delivered_matches"]) == (20, 20)
    assert job["lag_events"] == {topics.publications: 0, topics.updates: 0}
