from __future__ import annotations

import os
import sys
from pathlib import Path

from testbed import environment
from testbed.spark import spark_home

CHECKOUT = Path(__file__).parents[2]


def can_see(path: Path, *, bare: bool) -> bool:
    return any(path.is_relative_to(seen) for seen in environment.visible(bare=bare))


def test_hosts_see_the_checkout_and_the_environment_unless_they_are_bare() -> None:
    assert can_see(CHECKOUT, bare=False)
    assert can_see(Path(sys.prefix), bare=False)
    assert not can_see(CHECKOUT, bare=True)
    assert not can_see(Path(sys.executable), bare=True)
    assert not can_see(spark_home().parent / "numba", bare=True)


def test_bare_hosts_have_python_and_spark() -> None:
    found = environment.of_hosts(os.environ, bare=True)
    assert can_see(Path(found["PYSPARK_PYTHON"]), bare=True)
    assert can_see(spark_home() / "jars", bare=True)
    assert "PYTHONPATH" not in found


def test_the_driver_is_told_the_python_of_the_hosts() -> None:
    assert environment.of_hosts({}, bare=False)["PYSPARK_PYTHON"] == sys.executable
    assert environment.of_hosts({"PYTHONPATH": "src"}, bare=False)["PYTHONPATH"] == "src"
