"""The sink: Parquet files that a batch writes whole or not at all.

The name of a file is made from its batch, and a batch that runs again after a crash has the same
contents: writing it twice leaves one file. That is what makes deliveries exactly once.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ps2stream.errors import StateError
from ps2stream.files import whole_file
from ps2stream.model.schemas import MATCHES, REJECTED, empty


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

    def write_matches(self, batch_id: int, merger: int, matches: pa.RecordBatch) -> None:
        _write(self.matches / f"batch-{batch_id:012}-{merger:03}.parquet", matches)

    def write_rejected(self, batch_id: int, source: str, rejected: pa.RecordBatch) -> None:
        _write(self.rejected / f"batch-{batch_id:012}-{source}.parquet", rejected)

    def finish(self) -> None:
        """Leave an empty file where nothing was written, so that readers find a schema."""
        for directory, schema in ((self.matches, MATCHES), (self.rejected, REJECTED)):
            if not any(directory.glob("*.parquet")):
                write_parquet(directory / "empty.parquet", empty(schema))


def _write(path: Path, batch: pa.RecordBatch) -> None:
    if batch.num_rows:
        write_parquet(path, batch)


def write_parquet(path: Path, batch: pa.RecordBatch) -> None:
    with whole_file(path) as file:
        pq.write_table(pa.Table.from_batches([batch]), file, compression="zstd")
