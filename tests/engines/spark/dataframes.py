"""DataFrames of events without seq, and the order that they have by definition."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from engines.streams import as_numbered
from laws.engines import one_batch
from ps2stream.model.schemas import EVENTS, EVENTS_WITHOUT_SEQ


def in_partitions(spark: SparkSession, events: pa.Table, n_partitions: int) -> DataFrame:
    """Return events without their seq, in partitions whose rows keep their order."""
    rows = [tuple(row.values()) for row in events.select(EVENTS_WITHOUT_SEQ.names).to_pylist()]
    spread = spark.sparkContext.parallelize(rows, n_partitions)
    return spark.createDataFrame(spread, from_arrow_schema(EVENTS_WITHOUT_SEQ))


def numbered_as_they_come(batches: Iterable[pa.Table]) -> pa.Table:
    """Give the events of batches, partition by partition and row by row, the seqs that they have to get."""
    numbered: list[pa.RecordBatch] = []
    for batch in batches:
        last = sum(each.num_rows for each in numbered)
        numbered.append(as_numbered(one_batch(batch), after=last))
    return pa.Table.from_batches(numbered, EVENTS)


def files_by_batch(checkpoint: Path) -> list[list[Path]]:
    """Return the files that each batch of a stream had, as Spark noted it."""
    batches: defaultdict[int, list[Path]] = defaultdict(list)
    # The first line says in which version the rest is; there is a file a batch, and one that joins some.
    notes = (note.read_text().splitlines()[1:] for note in (checkpoint / "sources" / "0").glob("[0-9]*"))
    for line in dict.fromkeys(line for lines in notes for line in lines):
        taken = json.loads(line)
        batches[int(taken["batchId"])].append(Path(urlsplit(taken["path"]).path))
    return [batches[batch_id] for batch_id in sorted(batches)]
