"""Reports of roles: measures for those who watch, loads for the controller. About once a second."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum

import pyarrow as pa

from ps2stream.arrow import concat
from ps2stream.metrics.recorder import Recorder
from ps2stream.resident.wire import Place, Send, Topic
from ps2stream.roles.packets import WORKER, encode

_LOADS = Place(Topic.LOADS)


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
        whose = {WORKER: str(measures.number)}
        sends = [_send(ReportKind.MEASURES, measures.to_json().encode())]
        if sampled:
            sends.append(_send(ReportKind.SAMPLE, encode(concat(list(sampled)))))
        for kind, batch in ((ReportKind.CELLS, cells), (ReportKind.CONTENTS, contents)):
            if batch is not None:
                sends.append(_send(kind, encode(batch.replace_schema_metadata(whose))))
        return sends


def _send(kind: ReportKind, value: bytes) -> Send:
    return Send(_LOADS, value, kind.encode())
