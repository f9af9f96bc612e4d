"""The range of a batch is the one that Spark has written down."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from laws.engines import Place
from ps2stream.config import Settings
from ps2stream.engines.spark.offsets import batch_range
from ps2stream.errors import StateError
from ps2stream.journal import Journal
from ps2stream.sources.journal_range import JournalRange
from ps2stream.testing.generators import random_events


def write(checkpoint: Path, batch_id: int, text: str) -> None:
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(batch_id)).write_text(text)


def test_batches_follow_each_other_from_the_oldest_packet_to_the_last(
    spark: SparkSession, place: Place
) -> None:
    place.publish(random_events(300, seed=62), packet_events=20)
    with Journal.open(place.journal) as journal:
        journal.prune(2)
        first, last = journal.oldest() - 1, journal.last().position
    done = place.drain(spark, Settings(n_workers=2, batch_events=70))
    found = [batch_range(place.state / "checkpoint", each.batch_id, place.journal) for each in done]
    assert len(found) > 3
    assert [after for after, _ in found] == [first, *(upto for _, upto in found[:-1])]
    assert found[-1][1] == last
    read = [[each for each in batch.sources if isinstance(each, JournalRange)] for batch in done]
    assert [(ranges[0].after, ranges[-1].upto) for ranges in read] == found


def test_both_formats_of_spark_are_read(tmp_path: Path) -> None:
    write(tmp_path, 6, 'v1\n{"batchWatermarkMs":0}\n{"position": 31}')
    write(tmp_path, 7, 'v2\n{"batchWatermarkMs":0}\n0:{"position": 40}')
    assert batch_range(tmp_path, 7, tmp_path) == (31, 40)


@pytest.mark.parametrize("text", ["", "v1\n{}", "v1\n{}\n-", "v1\n{}\n{}", "v1\n{}\n[3]", "v1\n{}\n{}\n{}"])
def test_offsets_that_do_not_tell_are_named(tmp_path: Path, text: str) -> None:
    write(tmp_path, 3, text)
    with pytest.raises(StateError, match=r"offsets/3 must tell where batch 3 ends"):
        batch_range(tmp_path, 3, tmp_path)


def test_offsets_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"offsets/3 must tell where batch 3 ends"):
        batch_range(tmp_path, 3, tmp_path)
