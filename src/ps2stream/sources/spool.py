"""Events that were written to files of this host first, as a source."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.journal.packets import decode_publications
from ps2stream.model.events import conform, not_late, nothing_rejected, split
from ps2stream.model.schemas import PUBLICATIONS, REJECTED, UPDATES
from ps2stream.sources.source import SourceBatch

#: Spools as rows of a DataFrame: what the tasks that write them return.
SPOOLS = pa.schema(
    [
        ("directory", pa.string()),
        ("n_publications", pa.int64()),
        ("n_updates", pa.int64()),
        ("last_seq", pa.int64()),
    ]
)

_PUBLICATIONS_FILE, _UPDATES_FILE, _REJECTED_FILE = "publications.arrow", "updates.arrow", "rejected.arrow"


@dataclass(frozen=True, slots=True)
class Spool:
    """A directory of events; it has those of one batch, or of a part of one, and nothing else."""

    directory: Path
    n_publications: int
    n_updates: int
    last_seq: int

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Spool:
        """Return a spool from a row of SPOOLS."""
        return cls(**{**row, "directory": Path(row["directory"])})

    def row(self) -> pa.RecordBatch:
        """Return the spool as a row of SPOOLS."""
        return pa.RecordBatch.from_pylist([{**asdict(self), "directory": str(self.directory)}], schema=SPOOLS)

    def updates(self) -> Iterator[pa.RecordBatch]:
        yield from _read(self.directory / _UPDATES_FILE)

    def publications(self) -> Iterator[SourceBatch]:
        for batch in _read(self.directory / _PUBLICATIONS_FILE):
            yield SourceBatch(batch, nothing_rejected())
        for batch in _read(self.directory / _REJECTED_FILE):
            yield SourceBatch(decode_publications(None), batch)

    def waits(self, now: float) -> list[tuple[float, int]]:
        """Return nothing: when these events were made is known to their own source only."""
        return []

    def forget(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


def spool(events: Iterable[pa.RecordBatch], directory: Path, high_water: int) -> Spool:
    """Write events to a new directory of this host.

    Events need not be sorted within a batch of the stream, but none may lie at or below the last
    seq of the batches before: whoever waited for it has been told already.
    """
    directory.mkdir(parents=True)
    n_publications = n_updates = 0
    last_seq = high_water
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(
                pa.ipc.new_stream(stack.enter_context(pa.OSFile(str(directory / name), "wb")), schema)
            )
            for name, schema in (
                (_PUBLICATIONS_FILE, PUBLICATIONS),
                (_UPDATES_FILE, UPDATES),
                (_REJECTED_FILE, REJECTED),
            )
        ]
        for batch in events:
            kept, late = not_late(conform(batch), high_water)
            publications, updates = split(kept)
            for file, part in zip(files, (publications, updates, late), strict=True):
                file.write_batch(part)
            n_publications += publications.num_rows
            n_updates += updates.num_rows
            if kept.num_rows:
                last_seq = max(last_seq, pc.max(kept.column("seq")).as_py())
    return Spool(directory, n_publications, n_updates, last_seq)


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as file:
        yield from pa.ipc.open_stream(file)
