"""An ordered event log in Parquet: one file, or a directory of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ps2stream.errors import SchemaError
from ps2stream.model.events import conform
from ps2stream.model.schemas import EVENTS


class EventLog:
    """Read events in the order of their seq, whatever order the files hold them in.

    Files that are sorted, as a log should be, are streamed; others are sorted in memory first.
    """

    def __init__(self, path: Path) -> None:
        files = [(each, _open(each)) for each in _parquet_files(path)]
        self.n_events = sum(file.metadata.num_rows for _, file in files)
        spans = []
        self.is_sorted = True
        for name, file in files:
            conform(file.schema_arrow.empty_table(), where=str(name))
            with _explained(name):
                seqs = file.read(columns=["seq"]).column("seq").combine_chunks().cast(pa.int64()).drop_null()
            values = seqs.to_numpy()
            spans.append((int(values[0]), int(values[-1])) if len(values) else (0, 0))
            self.is_sorted = self.is_sorted and bool(np.all(values[1:] >= values[:-1]))
        order = sorted(range(len(files)), key=lambda i: spans[i][0])
        self._files = [files[i] for i in order]
        self.is_sorted = self.is_sorted and all(spans[i][1] <= spans[j][0] for i, j in pairwise(order))

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        """Yield the events in batches of ``size``; only the last one may be smaller."""
        parts = self._stream(size) if self.is_sorted else self._sorted(size)
        return _resized(parts, size)

    def _stream(self, size: int) -> Iterator[pa.RecordBatch]:
        for name, file in self._files:
            with _explained(name):
                for batch in file.iter_batches(size, columns=EVENTS.names):
                    yield conform(batch, where=str(name))

    def _sorted(self, size: int) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(self._stream(65_536), EVENTS)
        # Stable, so that of events with the same seq the first in the files is the one that counts.
        order = pc.sort_indices(table.column("seq"))
        for start in range(0, table.num_rows, size):
            yield from table.take(order.slice(start, size)).combine_chunks().to_batches()


def _parquet_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise SchemaError(f"events {path}: no such file or directory")
    found = (each for each in path.rglob("*.parquet") if each.is_file())
    files = sorted(each for each in found if not each.name.startswith((".", "_")))
    if not files:
        raise SchemaError(f"events {path}: the directory holds no .parquet file")
    return files


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise SchemaError(f"events {path}: not a readable Parquet file: {error}") from error


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise SchemaError(f"events {path}: cannot be read: {error}") from error


def _resized(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    n_held = 0
    for batch in batches:
        held.append(batch)
        n_held += batch.num_rows
        while n_held >= size:
            joined = pa.concat_batches(held)
            yield joined.slice(0, size)
            held, n_held = [joined.slice(size)], n_held - size
    if n_held:
        yield pa.concat_batches(held)
