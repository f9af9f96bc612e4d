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

from ps2stream.arrays import Int32s, Int64s, UInt8s
from ps2stream.arrow import Spans, are_same, spans_of, string_array, take_strings
from ps2stream.errors import StateError
from ps2stream.files import AnyPath
from ps2stream.kernels import kernel, signed
from ps2stream.model.schemas import MATCHES, REJECTED

# Another name: kernels say np.empty, and their fingerprints take it for this global.
from ps2stream.model.schemas import empty as no_rows
from ps2stream.store.contract import Store
from ps2stream.store.urls import store_at
from ps2stream.text.hashing import xxh64

#: Whose sink it is.
_OWNER = ".job"
_OURS = re.compile(r"(batch-.*|empty)\.parquet")
_PUBLICATION_ID = MATCHES.get_field_index("publication_id")
_ENCODED = pa.dictionary(pa.int32(), pa.string())
_WRITTEN = MATCHES.set(_PUBLICATION_ID, pa.field("publication_id", _ENCODED))
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
            return write_matches_to(file, itertools.chain([first], filled))

    def write_rejected(self, batch_id: int, source: str, rejected: pa.RecordBatch) -> None:
        if rejected.num_rows:
            _write_plain(self.rejected, f"batch-{batch_id:012}-{source}.parquet", rejected)

    def finish(self) -> None:
        """Leave an empty file where nothing was written, so that readers find a schema."""
        for part, schema in ((self.matches, MATCHES), (self.rejected, REJECTED)):
            if not any(key.endswith(".parquet") for key in part.list()):
                _write_plain(part, "empty.parquet", no_rows(schema))

    def copy_to(self, other: ParquetSink) -> None:
        """Copy what is there now, file by file."""
        for mine, its in ((self.matches, other.matches), (self.rejected, other.rejected)):
            for key in mine.list():
                with its.writer(key) as file:
                    file.write(mine.get(key))

    def _sweep(self) -> None:
        for part in (self.store, self.matches, self.rejected):
            part.sweep()


def write_matches_to(file: BinaryIO, pieces: Iterable[pa.RecordBatch]) -> int:
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
    codes, values = _encode_runs(spans_of(strings))
    buffers = [None, pa.py_buffer(codes)]
    return pa.DictionaryArray.from_buffers(_ENCODED, len(codes), buffers, string_array(*values))


@kernel
def _encode_runs(strings: Spans) -> tuple[Int32s, tuple[Int32s, UInt8s, int]]:
    """Return the number of each string's value, and the values as ``take_strings`` does."""
    n_rows = len(strings.offsets) - 1
    codes, first = np.empty(n_rows, np.int32), np.empty(n_rows, np.int64)
    n_runs = _number_runs(strings, codes, first)
    # Runs far apart may be of the same string, which a dictionary of Parquet must hold once.
    values = np.empty(n_runs, np.int32)
    n_values = _find_values(strings, first, values)
    for row in range(n_rows):
        codes[row] = values[codes[row]]
    return codes, take_strings(strings, first[:n_values])


@kernel
def _number_runs(strings: Spans, run: Int32s, first: Int64s) -> int:
    """Number the runs of equal strings and list the first row of each; return how many there are."""
    n_runs = 0
    for row in range(len(run)):
        if row == 0 or not are_same(strings, row, row - 1):
            first[n_runs] = row
            n_runs += 1
        run[row] = n_runs - 1
    return n_runs


@kernel
def _find_values(strings: Spans, first: Int64s, values: Int32s) -> int:
    """Number the values of runs, and keep in ``first`` the first row of each; return how many there are."""
    size = 2
    while size < 2 * len(values):
        size *= 2
    table = np.zeros(size, np.int32)  # open addressing: the number of a value + 1; 0 is free
    n_values = 0
    for run in range(len(values)):
        row = first[run]
        hashed = xxh64(strings.data, strings.offsets[row], strings.offsets[row + 1])
        slot = signed(hashed & np.uint64(size - 1))
        while table[slot] > 0 and not are_same(strings, first[table[slot] - 1], row):
            slot = (slot + 1) & (size - 1)
        if table[slot] == 0:
            first[n_values] = row
            n_values += 1
            table[slot] = n_values
        values[run] = table[slot] - 1
    return n_values


def _write_plain(store: Store, key: str, batch: pa.RecordBatch) -> None:
    with store.writer(key) as file:
        pq.write_table(pa.Table.from_batches([batch]), file, compression="zstd")
