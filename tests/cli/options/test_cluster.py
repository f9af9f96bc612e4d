"""Where work is done and what hosts share: by options, else by the environment, else on this machine."""

from __future__ import annotations

import argparse

import pytest

from ps2stream.cli.options.cluster import add_cluster, cluster_from, conf_from, master_from, store_from
from ps2stream.cli.options.usage import UsageError

CLUSTER = "spark://h:7077"


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PS2STREAM_MASTER", raising=False)
    monkeypatch.delenv("PS2STREAM_STORE", raising=False)


def _parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_cluster(parser)
    return parser.parse_args(words)


def test_without_a_master_work_is_done_here() -> None:
    for words in ([], ["--master", "local[2]"]):
        assert master_from(_parsed(*words)) is None
        assert store_from(_parsed(*words)) is None
        assert cluster_from(_parsed(*words)) == (None, None)


def test_a_store_of_the_environment_alone_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PS2STREAM_STORE", "s3://b/env")
    assert store_from(_parsed()) is None
    assert store_from(_parsed("--master", "local")) is None
    assert store_from(_parsed("--master", CLUSTER)) == "s3://b/env"
    monkeypatch.setenv("PS2STREAM_MASTER", CLUSTER)
    assert cluster_from(_parsed()) == (CLUSTER, "s3://b/env")
    assert store_from(_parsed("--store", "s3://b/mine")) == "s3://b/mine"


def test_a_store_that_is_named_counts_without_a_cluster_for_what_stays() -> None:
    named = _parsed("--store", "s3://b/mine")
    assert store_from(named) == "s3://b/mine"
    assert cluster_from(named) == (None, None), "a replay leaves nothing behind"


def test_work_on_a_cluster_needs_a_store() -> None:
    with pytest.raises(UsageError, match=r"--master spark://h:7077 needs --store \(or PS2STREAM_STORE\)"):
        cluster_from(_parsed("--master", CLUSTER))


def test_settings_of_spark_may_have_any_value_and_the_last_counts() -> None:
    words = ["spark.executor.memory=8g", "spark.x=a=b", "spark.y=", "spark.executor.memory=9g"]
    given = _parsed(*(each for word in words for each in ("--conf", word)))
    assert conf_from(given) == {"spark.executor.memory": "9g", "spark.x": "a=b", "spark.y": ""}
    assert conf_from(_parsed()) == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--conf", "spark.executor.memory"], "must be KEY=VALUE with a key that begins with 'spark.'"),
        (["--conf", "=8g"], "must be KEY=VALUE"),
        (["--conf", "executor.memory=8g"], "must be KEY=VALUE"),
        (["--conf", "spark.executor.memory =8g"], "must be KEY=VALUE"),
        (["--conf", "spark.master=yarn"], "the master is named by --master"),
        (["--store", ""], "must be a URL or a directory; got nothing"),
    ],
)
def test_what_cannot_be_is_wrong_usage(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        _parsed(*words)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
