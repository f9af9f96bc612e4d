"""The engine from a PySpark session that a user already has: DataFrame in, DataFrame of matches out."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from engines.spark.dataframes import files_by_batch, in_partitions, numbered_as_they_come
from engines.spark.processes import kill, source_readers
from laws.engines import JobHome, batches_of, outcome_of, sorted_outcome
from ps2stream.config import Settings
from ps2stream.engines.spark.source import JournalSource
from ps2stream.engines.spark.stream import (
    events_stream,
    journal_stream,
    match_events,
    some_of_both,
    stream_matches,
)
from ps2stream.errors import ConfigError, EngineError, JournalError, SchemaError, StateError
from ps2stream.model.schemas import EVENTS, EVENTS_WITHOUT_SEQ, MATCHES
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning.plan import Plan, owners_of_cells
from ps2stream.state.state import State
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

SETTINGS = Settings(n_workers=2, n_dispatchers=2)
FIRST_FILE_S = 1_700_000_000


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return rows


def files_of(spark: SparkSession, directory: Path, schema: pa.Schema = EVENTS) -> DataFrame:
    """Stream the files of a directory, one a batch."""
    reader = spark.readStream.schema(from_arrow_schema(schema)).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(directory))


def add_file(directory: Path, number: int, events: pa.RecordBatch, later_s: int | None = None) -> None:
    """Put a file into a directory that a stream reads, so that it never sees half of it.

    Spark reads files in the order of their times of modification, and those of the same millisecond in any:
    each is a second later than the one before, unless told.
    """
    directory.mkdir(exist_ok=True)
    aside = directory / f".{number:03}.parquet"
    pq.write_table(pa.Table.from_batches([events]), aside)
    modified_s = FIRST_FILE_S + (number if later_s is None else later_s)
    os.utime(aside, (modified_s, modified_s))
    aside.replace(directory / f"{number:03}.parquet")


def test_a_finite_dataframe_gives_a_dataframe_of_matches(spark: SparkSession) -> None:
    events = random_events(1_000, seed=51, invalid_share=0.0)
    matches = match_events(spark.createDataFrame(events), SETTINGS)
    assert matches.schema == from_arrow_schema(MATCHES)
    assert outcome_of(rows_of(matches), []).matches == sorted(oracle.run(events).matches)


def test_the_order_of_rows_and_partitions_does_not_matter_as_seq_decides(spark: SparkSession) -> None:
    events = random_events(600, seed=52, invalid_share=0.0)
    shuffled = list(range(events.num_rows))
    random.Random(1).shuffle(shuffled)
    frame = spark.createDataFrame(events.take(pa.array(shuffled))).repartition(5)
    matches = match_events(frame, SETTINGS)
    assert outcome_of(rows_of(matches), []).matches == sorted(oracle.run(events).matches)


def test_a_finite_dataframe_without_seq_is_matched_updates_first(spark: SparkSession) -> None:
    frame = in_partitions(spark, random_events(1_000, seed=62, invalid_share=0.0), 5)
    expected = sorted(oracle.run(numbered_as_they_come([frame.toArrow()])).matches)
    assert outcome_of(rows_of(match_events(frame, SETTINGS)), []).matches == expected
    assert len(expected) > 1_000


def test_a_dataframe_without_events_gives_no_match(spark: SparkSession) -> None:
    nothing = spark.createDataFrame(random_events(0, seed=1).to_pylist(), from_arrow_schema(EVENTS))
    assert rows_of(match_events(nothing)) == []


def test_the_plan_of_a_dataframe_sees_both_kinds_of_events(spark: SparkSession) -> None:
    events = random_events(300, seed=58, invalid_share=0.0)
    order = sorted(range(300), key=lambda row: events.column("op")[row].as_py() == "publish")
    some = some_of_both(spark.createDataFrame(events.take(pa.array(order))), 40)
    kinds = some.column("op").to_pylist()
    assert some.schema == EVENTS
    assert (len(kinds), kinds.count("publish")) == (40, 20)


def test_the_plan_of_a_dataframe_without_seq_sees_updates_before_publications(spark: SparkSession) -> None:
    events = random_events(300, seed=58, invalid_share=0.0).drop_columns("seq")
    some = some_of_both(spark.createDataFrame(events), 40)
    assert some.schema == EVENTS
    assert some.column("seq").to_pylist() == list(range(1, 41))
    assert [op == "publish" for op in some.column("op").to_pylist()] == [False] * 20 + [True] * 20
    assert some_of_both(in_partitions(spark, events.slice(0, 0), 2), 40).num_rows == 0


def test_the_first_start_takes_the_plan_that_it_is_given(spark: SparkSession, job_home: JobHome) -> None:
    events = random_events(300, seed=59)
    job_home.publish(events, packet_events=50)
    owners = np.arange(16, dtype=np.int32) % 2
    plan = Plan(1, "grid", 2, Grid.over(WORLD, 2), owners_of_cells(owners))
    with journal_stream(spark, job_home.journal, job_home.state, job_home.out, SETTINGS, plan=plan) as query:
        query.process_all_available()
    assert State.at(job_home.state).plan().h1.cell_owner.tolist() == owners.tolist()
    assert job_home.outcome([]).matches == sorted(oracle.run(events).matches)
    other = Plan(1, "grid", 2, Grid.over(WORLD, 2), owners_of_cells(1 - owners))
    with journal_stream(spark, job_home.journal, job_home.state, job_home.out, SETTINGS, plan=other):
        assert State.at(job_home.state).plan().h1.cell_owner.tolist() == owners.tolist(), "later ones keep it"


def test_a_stream_of_files_is_matched_as_they_arrive(spark: SparkSession, tmp_path: Path) -> None:
    events = random_events(900, seed=53, invalid_share=0.0)
    parts = batches_of(events, 150)
    for number, part in enumerate(parts[:3]):
        add_file(tmp_path / "events", number, part)
    source = files_of(spark, tmp_path / "events")
    with events_stream(source, tmp_path / "state", tmp_path / "out", SETTINGS) as query:
        query.process_all_available()
    # Stopped, robbed of its indexes and started again: subscriptions of the first run still count.
    shutil.rmtree(tmp_path / "state" / "index")
    with events_stream(source, tmp_path / "state", tmp_path / "out", SETTINGS) as query:
        for number, part in enumerate(parts[3:], start=3):
            add_file(tmp_path / "events", number, part)
            query.process_all_available()
    job_home = JobHome(tmp_path)
    assert job_home.outcome([]) == sorted_outcome(oracle.run(events))
    batches = {path.name.split("-")[1] for path in (tmp_path / "out" / "matches").glob("batch-*")}
    assert len(batches) == len(parts)
    assert not list((tmp_path / "state").glob("spool/*"))


def test_files_of_one_time_without_seq_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    events = random_events(900, seed=61, n_subscription_ids=60).drop_columns("seq")
    parts = batches_of(events, 150)
    for number, part in enumerate(parts[:4]):
        add_file(tmp_path / "events", number, part, later_s=0)
    source = files_of(spark, tmp_path / "events", EVENTS_WITHOUT_SEQ)
    with events_stream(source, tmp_path / "state", tmp_path / "out", SETTINGS, sample=parts[0]) as query:
        query.process_all_available()
    with events_stream(source, tmp_path / "state", tmp_path / "out", SETTINGS) as query:
        for number, part in enumerate(parts[4:], start=4):
            add_file(tmp_path / "events", number, part, later_s=0)
        query.process_all_available()
    taken = [file for (file,) in files_by_batch(tmp_path / "state" / "checkpoint")]
    assert sorted(file.name for file in taken) == [f"{number:03}.parquet" for number in range(len(parts))]
    expected = sorted_outcome(oracle.run(numbered_as_they_come([pq.read_table(file) for file in taken])))
    outcome = JobHome(tmp_path).outcome([])
    assert outcome == expected
    assert (len(outcome.matches) > 200, len(outcome.rejected) > 10) == (True, True)
    assert not list((tmp_path / "state").glob("spool/*"))


@pytest.mark.parametrize("begun_with_seq", [True, False])
def test_a_state_keeps_to_events_with_seq_or_without(
    spark: SparkSession, tmp_path: Path, begun_with_seq: bool
) -> None:
    (tmp_path / "events").mkdir()
    kinds = [files_of(spark, tmp_path / "events", schema) for schema in (EVENTS, EVENTS_WITHOUT_SEQ)]
    begun, other = kinds if begun_with_seq else reversed(kinds)
    with events_stream(begun, tmp_path / "state", tmp_path / "out", SETTINGS) as query:
        query.process_all_available()
    with (
        pytest.raises(StateError, match=r"was made by events \w+ a seq; got events \w+"),
        events_stream(other, tmp_path / "state", tmp_path / "out", SETTINGS),
    ):
        pass


def test_a_stream_that_has_lost_its_checkpoint_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Its first batch would be taken for the one that was decided, and updates of new files would be lost."""
    first, second = batches_of(random_events(200, seed=63), 100)
    add_file(tmp_path / "events", 0, first)
    source = files_of(spark, tmp_path / "events")
    with events_stream(source, tmp_path / "state", tmp_path / "out", SETTINGS) as query:
        query.process_all_available()
    before = JobHome(tmp_path).outcome([])
    shutil.rmtree(tmp_path / "state" / "checkpoint")
    add_file(tmp_path / "events", 0, second)
    with (
        pytest.raises(EngineError, match=r"belongs to the events of the checkpoint .* of Spark; got the"),
        events_stream(source, tmp_path / "state", tmp_path / "out", SETTINGS) as query,
    ):
        query.process_all_available()
    assert JobHome(tmp_path).outcome([]) == before


def test_an_event_that_comes_too_late_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    events = random_events(400, seed=54, invalid_share=0.0)
    first, second = batches_of(events, 200)
    add_file(tmp_path / "events", 0, first)
    source = files_of(spark, tmp_path / "events")
    with events_stream(source, tmp_path / "state", tmp_path / "out", SETTINGS) as query:
        query.process_all_available()
        add_file(tmp_path / "events", 1, pa.concat_batches([first.slice(190), second]))
        query.process_all_available()
    outcome = JobHome(tmp_path).outcome([])
    assert outcome.matches == sorted(oracle.run(events).matches)
    assert [rejected.seq for rejected in outcome.rejected] == first.column("seq")[190:].to_pylist()


def test_matches_can_be_followed_as_a_stream(spark: SparkSession, job_home: JobHome) -> None:
    events = random_events(600, seed=55)
    job_home.publish(events.slice(0, 300), packet_events=50)
    followed = stream_matches(spark, job_home.out)
    assert followed.isStreaming
    seen = followed.writeStream.format("memory").queryName("followed").start()
    try:
        job_home.drain(spark, SETTINGS)
        seen.processAllAvailable()
        n_early = spark.table("followed").count()
        job_home.publish(events, packet_events=50)
        job_home.drain(spark, SETTINGS)
        seen.processAllAvailable()
    finally:
        seen.stop()
    expected = sorted(oracle.run(events).matches)
    assert 0 < n_early < len(expected)
    assert outcome_of(rows_of(spark.table("followed")), []).matches == expected


def test_finite_and_endless_dataframes_are_not_confused(spark: SparkSession, tmp_path: Path) -> None:
    finite = spark.createDataFrame([], from_arrow_schema(EVENTS))
    (tmp_path / "events").mkdir()
    endless = files_of(spark, tmp_path / "events")
    with pytest.raises(ConfigError, match="use match_events"):
        events_stream(finite, tmp_path / "state", tmp_path / "out", SETTINGS).__enter__()
    with pytest.raises(ConfigError, match="use events_stream"):
        match_events(endless)


def test_a_dataframe_that_holds_no_events_is_told_of_at_the_call(spark: SparkSession, tmp_path: Path) -> None:
    wrong = spark.createDataFrame([], from_arrow_schema(EVENTS)).drop("expression")
    with pytest.raises(SchemaError, match=r"events: column 'expression' \(string\) is missing"):
        match_events(wrong)
    (tmp_path / "events").mkdir()
    endless = files_of(spark, tmp_path / "events")
    text = endless.withColumn("lat", endless["lat"].cast("string"))
    with pytest.raises(SchemaError, match="column 'lat' must be double; got string"):
        events_stream(text, tmp_path / "state", tmp_path / "out", SETTINGS).__enter__()
    assert not (tmp_path / "state").exists()


def test_a_second_job_on_a_state_is_refused(spark: SparkSession, job_home: JobHome) -> None:
    job_home.publish(random_events(50, seed=56), packet_events=50)
    with job_home.stream(spark, SETTINGS) as query:
        query.process_all_available()
        with pytest.raises(StateError, match="another job is running on the state"):
            job_home.drain(spark, SETTINGS)
        query.process_all_available()
    # The first one took no harm, and let go of the state when it ended.
    job_home.drain(spark, SETTINGS)


def test_a_state_is_not_used_with_other_settings(spark: SparkSession, job_home: JobHome) -> None:
    job_home.publish(random_events(20, seed=57), packet_events=50)
    job_home.drain(spark, SETTINGS)
    with pytest.raises(StateError, match="was made with n_workers=2; got 3"):
        job_home.drain(spark, Settings(n_workers=3, n_dispatchers=2))


def test_a_stream_goes_on_when_the_reader_of_its_source_is_killed(
    spark: SparkSession, job_home: JobHome, caplog: pytest.LogCaptureFixture
) -> None:
    events = random_events(400, seed=60, invalid_share=0.0)
    job_home.publish(events.slice(0, 200), packet_events=50)
    spark.dataSource.register(JournalSource)
    source = spark.readStream.format("ps2stream_journal").load(str(job_home.journal))
    with events_stream(source, job_home.state, job_home.out, SETTINGS) as query:
        query.process_all_available()
        readers = source_readers(os.getpid())
        assert len(readers) == 1
        kill(readers[0])
        job_home.publish(events, packet_events=50)
        query.process_all_available()
        assert query.n_subscriptions > 0
    assert job_home.outcome([]) == sorted_outcome(oracle.run(events))
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "the process that reads the source died"
    ]


def test_a_missing_journal_is_named(spark: SparkSession, job_home: JobHome) -> None:
    with (
        pytest.raises(JournalError, match=f"no journal at {job_home.journal}"),
        journal_stream(spark, job_home.journal, job_home.state, job_home.out, SETTINGS),
    ):
        pass
