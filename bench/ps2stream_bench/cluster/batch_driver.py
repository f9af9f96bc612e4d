"""A driver in a bed: ``match_events`` and a join in Spark SQL on the same files, in turns.

python -m ps2stream_bench.cluster.batch_driver '{"subscriptions": FILE, ...}'      # prints a list of rows
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.engines.spark.jvm import end_jvm
from ps2stream.engines.spark.session import own_session
from ps2stream.engines.spark.stream import match_events
from ps2stream_bench.cluster.members import members_here
from ps2stream_bench.cluster.processor_time import ProcessorTimes, Watch, since
from ps2stream_bench.cluster.traffic import traffic_of
from ps2stream_bench.peers.spark_sql_batch import matched_by_sql
from ps2stream_bench.results import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OURS, SQL = "match_events", "Spark SQL"
#: A sum over pairs that their order does not change, and that any other pair would: the same for both ways.
_COUNTED = (
    "count(*) AS n_matches",
    "coalesce(sum(cast(xxhash64(publication_seq, subscription_seq) AS decimal(38, 0))), 0) AS mixed",
)


def main() -> None:
    """Run what is asked for, and print the rows."""
    asked = json.loads(sys.argv[1])
    _give_memory(asked["executor_memory"], asked["driver_memory"])
    with tempfile.TemporaryDirectory(prefix="ps2stream-bench-") as home:
        log = Path(home) / "spark.log"
        try:
            with own_session("ps2stream-bench", log=log, master=os.environ["PS2STREAM_MASTER"]) as spark:
                rows = list(_turns(spark, asked))
        finally:
            end_jvm()
    print(json.dumps(rows))


def _give_memory(executor: str, driver: str) -> None:
    """Set what a session on a cluster leaves to whoever starts it."""
    memory = f"--conf spark.executor.memory={executor} --conf spark.driver.memory={driver}"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{memory} pyspark-shell"


def _turns(spark: SparkSession, asked: dict[str, Any]) -> Iterator[Row]:
    members = members_here()
    times = ProcessorTimes(members, os.getpid())
    ways: dict[str, Callable[[list[str]], DataFrame]] = {
        OURS: lambda files: _ours(spark, asked, files),
        SQL: lambda files: matched_by_sql(spark, asked["clauses"], files, asked["stop_words"]),
    }
    rng = np.random.default_rng([asked["seed"], 15])
    with Watch(times):
        for turn in asked["turns"]:
            for way in rng.permutation(turn["ways"]).tolist():
                seconds, traffic, started = times.read(), traffic_of(members), time.monotonic()
                found = ways[way](turn["publications"]).selectExpr(*_COUNTED).collect()[0]
                wall_s = time.monotonic() - started
                used, sent = since(seconds, times.read()), traffic_of(members)
                print(f"{way}, {turn['n']:,} publications: {wall_s:.1f} s", file=sys.stderr, flush=True)
                yield {
                    "way": way,
                    "n_publications": turn["n"],
                    "repetition": turn["repetition"],
                    "wall_s": wall_s,
                    "cpu_s": sum(used.values()),
                    "n_matches": found["n_matches"],
                    "fingerprint": str(found["mixed"]),
                    "store_to_bytes": sent["store"].to_bytes - traffic["store"].to_bytes,
                    "store_from_bytes": sent["store"].from_bytes - traffic["store"].from_bytes,
                    "hosts_to_bytes": sum(
                        sent[each.name].to_bytes - traffic[each.name].to_bytes
                        for each in members
                        if each.is_host
                    ),
                }


def _ours(spark: SparkSession, asked: dict[str, Any], publications: list[str]) -> DataFrame:
    settings = Settings(
        n_workers=asked["workers"],
        n_dispatchers=asked["dispatchers"],
        stop_words=tuple(asked["stop_words"]),
        adjustment=AdjustmentSettings(scope="off"),
    )
    return match_events(spark.read.parquet(asked["subscriptions"], *publications), settings)


if __name__ == "__main__":
    main()
