"""What many tests share: one Spark session for all that need one, and the engines behind one face.

In a parallel run (``./dev test``) all tests on Spark are in one process, and first: to start a session takes
longer than most tests. The others are handed out by file: what the tests of a file share is made once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

from laws.engines import Engine, Inline, MicroBatch, Place
from ps2stream.engines.spark.session import local_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark when the first test asks for it: that takes seconds, and most tests do without."""
    with pytest.MonkeyPatch.context() as patch:
        # Nothing of Spark's own (warehouse, shuffle files) may land in the checkout.
        patch.setenv("SPARK_LOCAL_DIRS", str(tmp_path_factory.mktemp("spark")))
        session = local_session("ps2stream tests", cores=2, memory="1g")
        yield session
        session.stop()


@pytest.fixture(params=["inline", "microbatch"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Run a test on every engine."""
    if request.param == "inline":
        return Inline()
    return MicroBatch(request.getfixturevalue("spark"))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    """Mark what needs the session, before pytest-xdist reads the marks."""
    if not hasattr(config, "workerinput"):
        return  # one process: everything in the order of the files
    for item in items:
        if _needs_spark(item):
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: not _needs_spark(item))


def _needs_spark(item: pytest.Function) -> bool:
    if "spark" in item.fixturenames:
        return True
    return hasattr(item, "callspec") and item.callspec.params.get("engine") == "microbatch"


class SparkApartAndTheRestByFile(LoadGroupScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    return SparkApartAndTheRestByFile(config, log) if config.getvalue("dist") == "loadgroup" else None
