"""Reports of roles: measures for those who watch, loads for the controller. About once a second."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from enum import StrEnum

import pyarrow as pa

from ps2stream.arrow import concat
from ps2stream.metrics.recorder import Recorder
from ps2stream.resident.wire import Place, Send, Topic
from ps2stream.roles.packets import WORKER, encode, fitting

_LOADS = Place(Topic.LOADS)
#: In the metadata of a part: which of how many rows it begins with.
FIRST_ROW, N_ROWS = b"first_row", b"n_rows"


class ReportKind(StrEnum):
    """What a record of the loads is, as its key says."""

    MEASURES = "measures"  # RoleMeasures, JSON
    CELLS = "cells"  # work in the cells of a worker since its last report (CELL_LOADS)
    CONTENTS = "contents"  # bytes in all cells of a worker
    SAMPLE = "sample"  # some publications (SAMPLED)


class Reporter:
    """Say when a report is due, and write it."""

    def __init__(self, recorder: Recorder, every_s: float) -> None:
        self._recorder = recorder
        self._every_s = every_s
        self._due = 0.0

    def is_due(self) -> bool:
        if time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + self._every_s
        return True

    def sends(
        self,
        sampled: Sequence[pa.RecordBatch] = (),
        cells: pa.RecordBatch | None = None,
        contents: pa.RecordBatch | None = None,
    ) -> list[Send]:
        measures = self._recorder.measures()
        sends = [_send(ReportKind.MEASURES, measures.to_json().encode())]
        joined = concat(list(sampled)) if sampled else None
        for kind, batch in (
            (ReportKind.SAMPLE, joined),
            (ReportKind.CELLS, cells),
            (ReportKind.CONTENTS, contents),
        ):
            if batch is not None:
                sends += _parts(kind, batch, measures.number)
        return sends


def _parts(kind: ReportKind, batch: pa.RecordBatch, number: int) -> Iterator[Send]:
    """Cut a batch into parts that brokers take."""
    first = 0
    for part in list(fitting(batch)) or [batch]:
        told = {WORKER: str(number), FIRST_ROW: str(first), N_ROWS: str(batch.num_rows)}
        yield _send(kind, encode(part.replace_schema_metadata(told)))
        first += part.num_rows


def _send(kind: ReportKind, value: bytes) -> Send:
    return Send(_LOADS, value, kind.encode())
