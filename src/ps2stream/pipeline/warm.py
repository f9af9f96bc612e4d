"""Compile or load every kernel ahead of the first event."""

from __future__ import annotations

import pyarrow as pa

from ps2stream.config import Settings
from ps2stream.kernels import one_compiler
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.pipeline.inline import InlineEngine
from ps2stream.pipeline.planning import first_plan

_WORLD = {"min_lon": -180.0, "min_lat": -90.0, "max_lon": 180.0, "max_lat": 90.0}
_EVENTS = [
    {"seq": 1, "op": SUBSCRIBE, "id": "a", "expression": "warm AND (kernel OR café)", **_WORLD},
    {"seq": 2, "op": SUBSCRIBE, "id": "b", "expression": "warm OR kernel", **_WORLD},
    {"seq": 3, "op": PUBLISH, "id": "p", "lat": 0.0, "lon": 0.0, "text": "a warm kernel, crème"},
    {"seq": 4, "op": UNSUBSCRIBE, "id": "a"},
]


def warm() -> None:
    """Run a few events through all stages, so that no kernel is compiled while others wait.

    The kinds of arrays must be those of real use: a kernel is compiled for each kind apart.
    """
    events = pa.RecordBatch.from_pylist(_EVENTS, schema=EVENTS)
    settings = Settings(n_workers=2, n_dispatchers=1)
    with one_compiler():
        engine = InlineEngine(first_plan(events, settings), settings)
        engine.process(events)
        for index in [worker.index for worker in engine.workers]:
            index.compacted(0)
        engine.registrar.registry.compacted(0)
