"""Packets carry batches through a shuffle unchanged."""

from __future__ import annotations

import pyarrow as pa

from ps2stream.roles.packets import ROUTED, decode, encode


def test_a_batch_comes_out_of_a_packet_as_it_went_in() -> None:
    rows = [
        {"seq": 1, "id": "p", "lon": 1.5, "lat": -2.0, "terms": [3, (1 << 64) - 1], "probes": [1, 0]},
        {"seq": 2, "id": "ü", "lon": 0.0, "lat": 0.0, "terms": [], "probes": []},
    ]
    batch = pa.RecordBatch.from_pylist(rows, ROUTED)
    for part in (batch, batch.slice(1), batch.slice(2)):
        assert decode(encode(part)).equals(part)
        assert decode(pa.py_buffer(encode(part))).equals(part)
