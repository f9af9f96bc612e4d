"""Rejected records on their way to their topic: a JSON object each."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa

from ps2stream.resident.wire import Place, Send, Topic


def rejected_sends(rejected: pa.RecordBatch) -> Iterator[Send]:
    """Write rejected records (schema REJECTED)."""
    for row in rejected.to_pylist() if rejected.num_rows else ():
        yield Send(Place(Topic.REJECTED), json.dumps(row).encode())
