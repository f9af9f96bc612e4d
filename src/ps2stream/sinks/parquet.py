"""The sink: Parquet files that a batch writes whole or not at all.

The name of a file is made from its batch, and a batch that runs again after a crash has the same
contents: writing it twice leaves one file. That is what makes deliveries exactly once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ps2stream.arrays import Int32s, Int64s
from ps2stream.arrow import Spans, spans_of
from ps2stream.errors import StateError
from ps2stream.files import whole_file
from ps2stream.kernels import kernel
from ps2stream.model.schemas import MATCHES, REJECTED, empty

_PUBLICATION_ID = MATCHES.get_field_index("publication_id")
_WRITTEN = MATCHES.set(_PUBLICATION_ID, pa.field("publication_id", pa.dictionary(pa.int32(), pa.string())))
_SEQS = ["subscription_seq", "publication_seq"]
#: Bytes up to which the ids of publications go into a dictionary.
_LARGEST_DICTIONARY = 1 << 26


class Sink:
    """Write the matches and the rejected records of batches under one directory."""

    def __init__(self, directory: Path) -> None:
        self.matches = directory / "matches"
        self.rejected = directory / "rejected"
        self._owner = directory / ".job"

    def prepare(self) -> None:
        """Make the directories, and remove what a killed process left half written."""
        for directory in (self.matches, self.rejected):
            directory.mkdir(parents=True, exist_ok=True)
            for path in directory.glob(".*.tmp"):
                path.unlink(missing_ok=True)

    def claim(self, job_id: str) -> None:
        """Make the sink that of one job; files are named by batch, and another job's batches would clash."""
        self.prepare()
        owner = self._owner.read_text() if self._owner.exists() else None
        if owner not in (None, job_id):
            raise StateError(
                f"the sink in {self._owner.parent} belongs to another job; use another directory, "
                "or remove it together with that job's state"
            )
        if owner is None:
            with whole_file(self._owner) as file:
                file.write(job_id.encode())

    def clear(self) -> None:
        """Begin anew: remove what an earlier run wrote here, and nothing else."""
        self.prepare()
        self._owner.unlink(missing_ok=True)
        for directory in (self.matches, self.rejected):
            for path in (*directory.glob("batch-*.parquet"), *directory.glob("empty.parquet")):
                path.unlink()

    def write_matches(self, batch_id: int, merger: int, pieces: Iterable[pa.RecordBatch]) -> int:
        """Write the part of a batch that one merger has, a row group or more a piece; return its matches.

        Any number of mergers may share a batch.
        """
        filled = (piece for piece in pieces if piece.num_rows)
        first = next(filled, None)
        if first is None:
            return 0
        path = self.matches / f"batch-{batch_id:012}-{merger:03}.parquet"
        return _write_matches(path, itertools.chain([first], filled))

    def write_rejected(self, batch_id: int, source: str, rejected: pa.RecordBatch) -> None:
        if rejected.num_rows:
            write_parquet(self.rejected / f"batch-{batch_id:012}-{source}.parquet", rejected)

    def finish(self) -> None:
        """Leave an empty file where nothing was written, so that readers find a schema."""
        for directory, schema in ((self.matches, MATCHES), (self.rejected, REJECTED)):
            if not any(directory.glob("*.parquet")):
                write_parquet(directory / "empty.parquet", empty(schema))


def _write_matches(path: Path, pieces: Iterable[pa.RecordBatch]) -> int:
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
    with whole_file(path) as file, pq.ParquetWriter(file, _WRITTEN, **options) as writer:
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


def write_parquet(path: Path, batch: pa.RecordBatch) -> None:
    with whole_file(path) as file:
        pq.write_table(pa.Table.from_batches([batch]), file, compression="zstd")
