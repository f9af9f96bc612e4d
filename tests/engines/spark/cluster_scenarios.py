"""What a driver does on a cluster of the test bed; started by test_cluster.py, says what it found as JSON.

python cluster_scenarios.py journal SEED PARTITIONER WORKERS [FAULT]
python cluster_scenarios.py kafka SEED PARTITIONER WORKERS
python cluster_scenarios.py dataframe SEED
python cluster_scenarios.py without-seq SEED SHARED_DIRECTORY [FAULT]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from clusters import cluster_command
from engines.spark.dataframes import files_by_batch, numbered_as_they_come
from kafka.produced import delivered, ordered_events, produce
from laws.chaos import Chaos
from laws.engines import batches_of, one_batch
from ps2stream.config import Settings
from ps2stream.engines.batch_tally import tally_batch
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.spark.kafka_stream import kafka_stream
from ps2stream.engines.spark.session import cluster_session
from ps2stream.engines.spark.stream import events_stream, journal_stream, match_events
from ps2stream.engines.stream_start import StreamOptions
from ps2stream.engines.tally import Tally
from ps2stream.journal import Journal
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.topics import Topics
from ps2stream.model.matches import Match
from ps2stream.model.schemas import EVENTS_WITHOUT_SEQ
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.store.urls import store_at
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

_STORE = os.environ["PS2STREAM_STORE"]
_N_EVENTS = 3_000


def matches_at(out: str) -> list[Match]:
    found = ParquetSink.at(out).matches
    tables = [pq.read_table(pa.BufferReader(found.get(key))) for key in found.list()]
    return sorted(Match(**row) for table in tables for row in table.to_pylist())


def on_a_journal(
    spark: SparkSession, seed: int, partitioner: str, n_workers: int, fault: list[str]
) -> dict[str, Any]:
    """Process a journal of this host, with adjustments before most batches and perhaps a fault amid them."""
    events = random_events(_N_EVENTS, seed=seed, invalid_share=0.0)
    journal, where = Path(tempfile.mkdtemp()) / "journal", f"{_STORE}/{seed}"
    with Journal.open(journal, create=True) as opened:
        for start in range(0, _N_EVENTS, 50):
            opened.append_ordered(one_batch(events.slice(start, 50)))
    settings = Settings(n_workers=n_workers, n_dispatchers=3, batch_events=300, partitioner=partitioner)
    tally, chaos = Tally.of(n_workers, 3), Chaos(seed, one_batch(events.slice(0, 200)))
    enough = threading.Event()

    def on_batch(done: BatchDone) -> None:
        tally_batch(tally, done)
        if done.batch_id == 2:
            enough.set()

    with journal_stream(
        spark,
        journal,
        f"{where}/state",
        f"{where}/out",
        settings,
        on_batch=on_batch,
        controller=chaos,
        snapshot_every=150,
    ) as stream:
        if fault:
            while not enough.wait(0.1):
                stream.check()
            subprocess.run(cluster_command(*fault), check=True)
        stream.process_all_available()
    return {
        "as_the_oracle": matches_at(f"{where}/out") == sorted(oracle.run(events).matches),
        "n_matches": tally.n_matches,
        "adjustments": len(chaos.made),
        "moves": sum(worker.n_moves for worker in tally.workers),
        "rebuilds": sum(worker.n_rebuilds for worker in tally.workers),
        "hosts": sorted({worker.host for worker in tally.workers}),
    }


def on_kafka(spark: SparkSession, seed: int, partitioner: str, n_workers: int) -> dict[str, Any]:
    """Process topics that are written to meanwhile, with adjustments before most batches."""
    events = random_events(_N_EVENTS, seed=seed, invalid_share=0.0)
    topics = Topics(Kafka(os.environ["PS2STREAM_KAFKA"]), f"law-{seed}")
    topics.create(3)
    settings = Settings(n_workers=n_workers, n_dispatchers=3, batch_events=300, partitioner=partitioner)
    tally, chaos = Tally.of(n_workers, 3), Chaos(seed, one_batch(events.slice(0, 200)))
    produce(topics, events.slice(0, 500), seed)
    options = StreamOptions(snapshot_every=150, controller=chaos)
    with kafka_stream(
        spark,
        topics,
        f"{_STORE}/{seed}/state",
        settings,
        on_batch=lambda done: tally_batch(tally, done),
        options=options,
    ) as stream:
        for start in range(500, _N_EVENTS, 250):
            produce(topics, events.slice(start, 250), seed + start)
            stream.check()
        stream.process_all_available()
    ordered = ordered_events(topics)
    expected = sorted(oracle.run(ordered).matches)
    return {
        "n_events": ordered.num_rows,
        "as_the_oracle": sorted(Match(**row) for row in delivered(topics, topics.matches)) == expected,
        "n_matches": len(expected),
        "adjustments": len(chaos.made),
        "moves": sum(worker.n_moves for worker in tally.workers),
        "hosts": sorted({worker.host for worker in tally.workers}),
    }


def of_a_dataframe(spark: SparkSession, seed: int) -> dict[str, Any]:
    """Match a finite DataFrame whose rows are in no order."""
    events = random_events(_N_EVENTS, seed=seed, invalid_share=0.0)
    rows = list(range(_N_EVENTS))
    random.Random(seed).shuffle(rows)
    frame = spark.createDataFrame(events.take(pa.array(rows))).repartition(5)
    found = match_events(frame, Settings(n_workers=4)).toArrow().to_pylist()
    expected = sorted(oracle.run(events).matches)
    return {
        "as_the_oracle": sorted(Match(**row) for row in found) == expected,
        "n_matches": len(expected),
    }


def without_seq(spark: SparkSession, seed: int, shared: Path, fault: list[str]) -> dict[str, Any]:
    """Match files of one time, without seq: all at once, and as a stream, perhaps with a fault amid it."""
    events = random_events(_N_EVENTS, seed=seed, n_subscription_ids=150).select(EVENTS_WITHOUT_SEQ.names)
    directory, schema = shared / "events", from_arrow_schema(EVENTS_WITHOUT_SEQ)
    directory.mkdir()
    for number, part in enumerate(batches_of(events, _N_EVENTS // 10)):
        pq.write_table(pa.Table.from_batches([part]), directory / f"{number}.parquet")
        os.utime(directory / f"{number}.parquet", (1_700_000_000, 1_700_000_000))
    frame = spark.read.schema(schema).parquet(str(directory))
    at_once = sorted(oracle.run(numbered_as_they_come([frame.toArrow()])).matches)
    found = match_events(frame, Settings(n_workers=4)).toArrow().to_pylist()
    where, begun = f"{_STORE}/{seed}", threading.Event()
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(directory))
    with events_stream(
        source,
        f"{where}/state",
        f"{where}/out",
        Settings(n_workers=5, n_dispatchers=3),
        checkpoint=shared / "checkpoint",
        on_batch=lambda done: begun.set(),
    ) as stream:
        if fault:
            while not begun.wait(0.1):
                stream.check()
            subprocess.run(cluster_command(*fault), check=True)
        stream.process_all_available()
    batches = files_by_batch(shared / "checkpoint")
    frames = [spark.read.schema(schema).parquet(*map(str, files)).toArrow() for files in batches]
    in_turn = sorted(oracle.run(numbered_as_they_come(frames)).matches)
    return {
        "finite_as_the_oracle": sorted(Match(**row) for row in found) == at_once,
        "stream_as_the_oracle": matches_at(f"{where}/out") == in_turn,
        "n_batches": len(batches),
        "n_matches": [len(at_once), len(in_turn)],
        "left_in_the_spool": store_at(f"{where}/state").list("spool"),
    }


def main() -> None:
    spark = cluster_session("scenario", os.environ["PS2STREAM_MASTER"])
    if sys.argv[1] == "journal":
        seed, partitioner, n_workers, *fault = sys.argv[2:]
        found = on_a_journal(spark, int(seed), partitioner, int(n_workers), fault)
    elif sys.argv[1] == "kafka":
        seed, partitioner, n_workers = sys.argv[2:]
        found = on_kafka(spark, int(seed), partitioner, int(n_workers))
    elif sys.argv[1] == "without-seq":
        seed, shared, *fault = sys.argv[2:]
        found = without_seq(spark, int(seed), Path(shared), fault)
    else:
        found = of_a_dataframe(spark, int(sys.argv[2]))
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
