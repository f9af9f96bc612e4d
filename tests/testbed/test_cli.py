from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed import launch, requirements
from testbed.bed import Sizes
from testbed.cli import main, parser
from testbed.launch import Wanted


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[Wanted]:
    """Take note of what would be run."""
    runs: list[Wanted] = []

    def run(wanted: Wanted) -> int:
        runs.append(wanted)
        return 5

    monkeypatch.setattr(launch, "run", run)
    return runs


def test_a_cluster_has_three_hosts_and_no_kafka_unless_asked_for(wanted: list[Wanted]) -> None:
    assert main(["cluster", "run", "--", "pytest", "-m", "slow", "--hosts"]) == 5
    assert wanted == [Wanted(3, False, Sizes(2, "1g"), (), ("pytest", "-m", "slow", "--hosts"))]


def test_options_of_a_cluster(wanted: list[Wanted]) -> None:
    main(
        [
            *("cluster", "run", "--hosts", "5", "--kafka", "--cores", "4", "--memory", "512m"),
            *("--share", "/srv/data", "--bare", "--", "true"),
        ]
    )
    assert wanted == [Wanted(5, True, Sizes(4, "512m"), (Path("/srv/data"),), ("true",), bare=True)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["cluster", "run"],
        ["cluster", "run", "--hosts", "0", "--", "true"],
        ["cluster", "run", "--hosts", "100", "--", "true"],
        ["cluster", "run", "--memory", "1t", "--", "true"],
        ["cluster", "cut", "h1"],
        ["cluster", "kill", "h1", "--only", "driver"],
        ["cluster"],
        ["kafka"],
        ["kafka", "up", "--port", "high"],
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        parser().parse_args(arguments)
    assert exit_.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.fixture
def fresh_requirements() -> None:
    requirements.missing.cache_clear()


@pytest.mark.usefixtures("fresh_requirements")
def test_without_root_it_says_so_and_ends_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["cluster", "run", "--", "true"]) == 3
    assert "needs root" in capsys.readouterr().err
    requirements.missing.cache_clear()


@pytest.mark.usefixtures("fresh_requirements")
def test_without_iproute_it_says_what_to_install_and_ends_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "_SYSTEM_PATH", "")
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["cluster", "run", "--", "true"]) == 3
    assert "apt-get install iproute2" in capsys.readouterr().err
    requirements.missing.cache_clear()


def test_a_fault_outside_of_all_clusters_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PS2STREAM_CLUSTER", str(tmp_path / "cluster.json"))
    assert main(["cluster", "kill", "h1"]) == 1
    assert "describes no bed" in capsys.readouterr().err
