"""Event logs as the stages take them: cut into batches, parted, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ps2stream.config import Settings
from ps2stream.model.events import in_order, split
from ps2stream.model.schemas import BEFORE_ALL_SEQS, EVENTS
from ps2stream.partitioning.plan import Plan
from ps2stream.planning.first_plan import first_plan
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.testing.generators import random_events

SETTINGS = Settings(n_workers=3, n_dispatchers=1, grid_bits=5)
TOKENIZER = SETTINGS.tokenizer()
WORLD = {"min_lon": -180.0, "min_lat": -90.0, "max_lon": 180.0, "max_lat": 90.0}


def subscribe(seq: int, name: str, expression: str = "fire", **bounds: float) -> dict[str, Any]:
    return {"seq": seq, "op": "subscribe", "id": name, "expression": expression, **WORLD, **bounds}


def unsubscribe(seq: int, name: str) -> dict[str, Any]:
    return {"seq": seq, "op": "unsubscribe", "id": name}


def publish(seq: int, name: str, text: str = "fire", lon: float = 0.0, lat: float = 0.0) -> dict[str, Any]:
    return {"seq": seq, "op": "publish", "id": name, "text": text, "lon": lon, "lat": lat}


def events_of(*rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), EVENTS)


def updates_of(events: pa.RecordBatch) -> pa.RecordBatch:
    """Compile the valid updates of some events."""
    return compile_updates(split(events)[1], TOKENIZER)[0]


def publications_of(events: pa.RecordBatch) -> pa.RecordBatch:
    return split(events)[0]


def random_stream(n_events: int, seed: int, **options: Any) -> pa.RecordBatch:
    """Draw events with seqs in order; other faults stay in."""
    (batch,) = random_events(n_events, seed, **options).combine_chunks().to_batches()
    return in_order(batch, BEFORE_ALL_SEQS)[0]


def as_numbered(events: pa.RecordBatch, after: int = 0) -> pa.RecordBatch:
    """Give a batch of events, row by row, the seqs that it has to get when it comes without any.

    Its updates come first, and what has no known op with them.
    """
    rows = events.to_pylist()
    rows.sort(key=lambda row: row["op"] == "publish")  # stable
    return events_of(*({**row, "seq": after + n} for n, row in enumerate(rows, start=1)))


def batches_of(events: pa.RecordBatch, size: int) -> list[pa.RecordBatch]:
    return [events.slice(start, size) for start in range(0, events.num_rows, size)]


def plan_for(events: pa.RecordBatch, settings: Settings = SETTINGS) -> Plan:
    return first_plan(events, settings)


def matches_of(batch: pa.RecordBatch) -> list[tuple[int, str, int]]:
    """List what workers found, in an order of our own."""
    return sorted((seq, id, each) for seq, id, seqs in map(dict.values, batch.to_pylist()) for each in seqs)


def seqs_of(batch: pa.RecordBatch, name: str = "seq") -> list[int]:
    values: list[int] = np.asarray(batch.column(name)).tolist()
    return values
