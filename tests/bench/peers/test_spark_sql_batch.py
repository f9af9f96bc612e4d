"""The join as a job on files finds what the definition of a match says, each pair once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ps2stream.testing import oracle
from ps2stream_bench.peers.boxes_and_clauses import clause_table
from ps2stream_bench.peers.spark_sql_batch import matched_by_sql
from ps2stream_bench.workloads import corpus_of, publish_events, subscribe_events


def test_clauses_and_publications_of_files_are_joined(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lon, lat = rng.uniform(-100.0, -99.4, 1_000), rng.uniform(40.0, 40.6, 1_000)
    words = np.minimum(rng.zipf(1.2, (1_000, 14)), 250)
    corpus = corpus_of(lon, lat, pa.array([" ".join(f"w{word}" for word in row) for row in words]))
    subscriptions = subscribe_events(corpus, "q3", 400, seed=4)
    publications = publish_events(corpus, 300, 401, seed=5)
    clauses, files = tmp_path / "clauses.parquet", [tmp_path / f"{n}.parquet" for n in range(2)]
    pq.write_table(clause_table(subscriptions, corpus.stop_words), clauses)
    pq.write_table(publications.slice(0, 100), files[0])
    pq.write_table(publications.slice(100), files[1])
    outcome = oracle.run(pa.concat_tables([subscriptions, publications]), corpus.stop_words)
    found = matched_by_sql(spark, str(clauses), map(str, files), corpus.stop_words).collect()
    wanted = sorted((match.subscription_seq, match.publication_seq) for match in outcome.matches)
    assert len(wanted) > 300
    assert sorted((row["subscription_seq"], row["publication_seq"]) for row in found) == wanted
