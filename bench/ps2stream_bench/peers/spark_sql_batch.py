"""The join of :mod:`spark_sql` as a job on files, however many publications there are."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession

from ps2stream_bench.peers.spark_sql import by_cell_and_term, looked_up, pairs_by_join

_SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    # Too many rows to send all of either side to all hosts: how they meet is left to Spark.
    "spark.sql.autoBroadcastJoinThreshold": str(64 << 20),
}
#: Partitions of a shuffle for each slot of the cluster: adaptive execution joins those that are small.
_PARTITIONS_PER_SLOT = 4


def matched_by_sql(
    spark: SparkSession, clauses: str, publications: Iterable[str], stop_words: Iterable[str]
) -> DataFrame:
    """Return the pairs (columns of PAIRS) of clauses and publish events that lie in Parquet files."""
    # A session beside the one given, on the same context: what is set here touches nobody else.
    session = spark.newSession()
    n_partitions = _PARTITIONS_PER_SLOT * spark.sparkContext.defaultParallelism
    for name, value in {**_SETTINGS, "spark.sql.shuffle.partitions": str(n_partitions)}.items():
        session.conf.set(name, value)
    places = looked_up(session.read.parquet(*publications), stop_words)
    return pairs_by_join(by_cell_and_term(session.read.parquet(clauses)), places)
