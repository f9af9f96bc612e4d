"""A journal as a Spark stream, through the Python Data Source API.

    spark.dataSource.register(JournalSource)
    spark.readStream.format("ps2stream_journal").load("path/of/journal")

Offsets are positions in the journal and live in Spark's checkpoint. ``parts`` says into how many
parts a batch is cut, ``batch_events`` how much it may hold. It is for those who want the events themselves;
our own job reads a journal without it (``query.py`` says why).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from ps2stream.errors import ConfigError, JournalError
from ps2stream.files import absolute
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_events
from ps2stream.model.schemas import EVENTS
from ps2stream.sources.journal_range import journal_ranges

NAME = "ps2stream_journal"


class JournalSource(DataSource):
    """Register with ``spark.dataSource.register``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(EVENTS)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        path = self.options.get("path")
        if not path:
            raise ConfigError("the source needs the directory of a journal: .load(path)")
        return JournalStreamReader(
            absolute(path),
            int(self.options.get("parts", 2)),
            int(self.options.get("batch_events", 100_000)),
        )


class JournalStreamReader(DataSourceStreamReader):
    """Read a journal batch by batch; its position is the offset."""

    def __init__(self, directory: Path, n_parts: int, batch_events: int) -> None:
        self._directory = directory
        self._n_parts = n_parts
        self._batch_events = batch_events

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        with Journal.open(self._directory) as journal:
            return {"position": journal.oldest() - 1}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._batch_events)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        with Journal.open(self._directory) as journal:
            if isinstance(limit, ReadAllAvailable):
                return {"position": journal.last().position}
            return {"position": journal.end_within(start["position"], self._batch_events)}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        with Journal.open(self._directory) as journal:
            return {"position": journal.last().position}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        after, upto = start["position"], end["position"]
        if upto <= after:
            return []
        parts = journal_ranges(self._directory, after, upto, self._n_parts)
        return [InputPartition((part.after, part.upto)) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        after, upto = partition.value
        with Journal.open(self._directory) as journal:
            for packet in journal.read(after, upto):
                if packet.damage:  # a stream of events has no other way to say that some are missing
                    raise JournalError(packet.damage)
                yield decode_events(packet)
