"""The Parquet sink: files that a batch writes whole or not at all, each under a name of its own.

matches/batch-000000000007-001.parquet      what the merger of worker 1 has of batch 7
rejected/batch-000000000007-updates.parquet

On an object store a file is put as a whole; put again by a rerun, or late by a driver that was taken over, it
is replaced by the same bytes. A listing decides nothing about a batch: one that lags lets ``finish`` add a
file of no rows. Only ``clear``, between jobs, has to find all that is there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ps2stream.arrays import Int32s, Int64s
from ps2stream.arrow import Spans, spans_of
from ps2stream.errors import StateError
from ps2stream.files import AnyPath
from ps2stream.kernels import kernel
from ps2stream.model.schemas import MATCHES, REJECTED, empty
from ps2stream.store.contract import Store
from ps2stream.store.urls import store_at

#: Whose sink it is.
_OWNER = ".job"
_OURS = re.compile(r"(batch-.*|empty)\.parquet")
_PUBLICATION_ID = MATCHES.get_field_index("publication_id")
_WRITTEN = MATCHES.set(_PUBLICATION_ID, pa.field("publication_id", pa.dictionary(pa.int32(), pa.string())))
_SEQS = ["subscription_seq", "publication_seq"]
#: Bytes up to which the ids of publications go into a dictionary.
_LARGEST_DICTIONARY = 1 << 26


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """Files under ``matches`` and ``rejected`` of a store; a process may send it to another."""

    store: Store

    @classmethod
    def at(cls, where: AnyPath) -> ParquetSink:
        """Return the sink in a directory of this host, which need not exist yet, or at a URL."""
        return cls(store_at(where))

    @property
    def matches(self) -> Store:
        return self.store.under("matches")

    @property
    def rejected(self) -> Store:
        return self.store.under("rejected")

    def claim(self, job_id: str) -> None:
        self._sweep()
        if (
            not self.store.put_if_absent(_OWNER, job_id.encode())
            and bytes(self.store.get(_OWNER)) != job_id.encode()
        ):
            raise StateError(
                f"the sink in {self.store.location()} belongs to another job; use another directory, "
                "or remove it together with that job's state"
            )

    def clear(self) -> None:
        self._sweep()
        self.store.delete(_OWNER)
        for part in (self.matches, self.rejected):
            for key in part.list():
                if _OURS.fullmatch(key):
                    part.delete(key)

    def write_matches(self, batch_id: int, merger: int, pieces: Iterable[pa.RecordBatch]) -> int:
        """Write one file, a row group or more a piece."""
        filled = (piece for piece in pieces if piece.num_rows)
        first = next(filled, None)
        if first is None:
            return 0
        with self.matches.writer(f"batch-{batch_id:012}-{merger:03}.parquet") as file:
            return _write_matches(file, itertools.chain([first], filled))

    def write_rejected(self, batch_id: int, source: str, rejected: pa.RecordBatch) -> None:
        if rejected.num_rows:
            _write_plain(self.rejected, f"batch-{batch_id:012}-{source}.parquet", rejected)

    def finish(self) -> None:
        """Leave an empty file where nothing was written, so that readers find a schema."""
        for part, schema in ((self.matches, MATCHES), (self.rejected, REJECTED)):
            if not any(key.endswith(".parquet") for key in part.list()):
                _write_plain(part, "empty.parquet", empty(schema))

    def copy_to(self, other: ParquetSink) -> None:
        """Copy what is there now, file by file."""
        for mine, its in ((self.matches, other.matches), (self.rejected, other.rejected)):
            for key in mine.list():
                with its.writer(key) as file:
                    file.write(mine.get(key))

    def _sweep(self) -> None:
        for part in (self.store, self.matches, self.rejected):
            part.sweep()


def _write_matches(file: BinaryIO, pieces: Iterable[pa.RecordBatch]) -> int:
    """Write matches as what they are: runs of one publication, with seqs that ascend.

    Readers see the columns of MATCHES. The merger exists once, so time counts here: this takes a third of
    what Arrow's defaults with zstd take (docs/performance.md).
    """
    n_matches = 0
    options: dict[str, Any] = {
        "compression": "lz4",
        "use_dictionary": ["publication_id"],
        "dictionary_pagesize_limit": _LARGEST_DICTIONARY,
        "column_encoding": dict.fromkeys(_SEQS, "DELTA_BINARY_PACKED"),
        "write_statistics": _SEQS,
        "store_schema": False,  # it would tell readers of the dictionary
    }
    with pq.ParquetWriter(file, _WRITTEN, **options) as writer:
        for piece in pieces:
            columns = piece.columns
            columns[_PUBLICATION_ID] = _by_runs(columns[_PUBLICATION_ID])
            writer.write_table(pa.Table.from_arrays(columns, schema=_WRITTEN))
            n_matches += piece.num_rows
    return n_matches


def _by_runs(strings: pa.Array) -> pa.DictionaryArray:
    """Encode strings that come in runs, hashing one of each run."""
    run, first = np.empty(len(strings), np.int32), np.empty(len(strings), np.int64)
    n_runs = _number_runs(spans_of(strings), run, first)
    # Runs far apart may be of the same string, which a dictionary of Parquet must hold once.
    values = strings.take(pa.array(first[:n_runs])).dictionary_encode()
    indices = values.indices.to_numpy()[run]
    return pa.DictionaryArray.from_arrays(pa.array(indices), values.dictionary)


@kernel
def _number_runs(strings: Spans, run: Int32s, first: Int64s) -> int:
    """Number the runs of equal strings and list the first row of each; return how many there are."""
    data, offsets = strings.data, strings.offsets
    n_runs = 0
    for row in range(len(run)):
        start, length = offsets[row], offsets[row + 1] - offsets[row]
        is_same = row > 0 and start - offsets[row - 1] == length
        if is_same:
            for i in range(start, start + length):
                if data[i] != data[i - length]:
                    is_same = False
                    break
        if not is_same:
            first[n_runs] = row
            n_runs += 1
        run[row] = n_runs - 1
    return n_runs


def _write_plain(store: Store, key: str, batch: pa.RecordBatch) -> None:
    with store.writer(key) as file:
        pq.write_table(pa.Table.from_batches([batch]), file, compression="zstd")
