"""What many tests share: one Spark session for all that need one, and the engines behind one face."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

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
