"""Python processes of Spark import PySpark where it is compiled, not from Spark's archive of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from ps2stream.engines.spark.home import home_without_archive


def where_pyspark_is(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyspark

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"file": [pyspark.__file__]})


def test_tasks_have_the_pyspark_of_this_interpreter(spark: SparkSession) -> None:
    rows = spark.range(0, 1, 1, 1).mapInArrow(where_pyspark_is, "file string").collect()
    assert [row.file for row in rows] == [pyspark.__file__]


def test_the_home_has_all_that_starts_a_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with home_without_archive():
        home = Path(os.environ["SPARK_HOME"])
        assert os.access(home / "bin" / "spark-submit", os.X_OK)
        assert list((home / "jars").glob("spark-core_*.jar"))
        assert not (home / "python").exists()
    assert "SPARK_HOME" not in os.environ


def test_a_home_that_the_user_names_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    with home_without_archive():
        assert os.environ["SPARK_HOME"] == "/opt/spark"
    assert os.environ["SPARK_HOME"] == "/opt/spark"
