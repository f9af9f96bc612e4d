"""Executors on hosts that have Python, Java and Spark, and get everything else from an archive."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusters import in_cluster, needs_cluster

pytestmark = [pytest.mark.slow, needs_cluster]

_ROOT = Path(__file__).parents[3]
_SCENARIO = Path(__file__).with_name("packed_scenario.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Pack an archive, and match a DataFrame on hosts that have nothing else of ours."""
    archive = tmp_path_factory.mktemp("pack") / "packages.tar.gz"
    subprocess.run([sys.executable, str(_ROOT / "tools" / "pack_archive.py"), str(archive)], check=True)
    done = in_cluster([sys.executable, str(_SCENARIO), str(archive)], bare=True)
    assert done.returncode == 0, done.stderr[-5_000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_a_dataframe_is_matched_as_the_oracle_does(found: dict[str, Any]) -> None:
    assert found["as_the_oracle"]
    assert found["n_matches"] > 1_000


def test_the_package_comes_from_the_archive_on_all_hosts(found: dict[str, Any]) -> None:
    assert {look["host"] for look in found["looks"]} == {"h1", "h2", "h3"}
    for look in found["looks"]:
        assert look["package"] == f"{look['directory']}/packages/ps2stream/__init__.py"
        assert not look["checkout"]
        assert look["prefix"] == sys.base_prefix


def test_no_host_compiles_a_kernel_that_the_archive_has(found: dict[str, Any]) -> None:
    assert {tuple(look["compiled"]) for look in found["looks"]} == {("lock",)}
