"""Packets carry batches through a shuffle unchanged."""

from __future__ import annotations

import pyarrow as pa

from ps2stream.pipeline.packets import FOUND, MATCHES, PACKETS, REPORT, ROUTED, decode, encode, packet_rows


def test_a_batch_comes_out_of_a_packet_as_it_went_in() -> None:
    rows = [
        {"seq": 1, "id": "p", "lon": 1.5, "lat": -2.0, "terms": [3, (1 << 64) - 1], "probes": [1, 0]},
        {"seq": 2, "id": "ü", "lon": 0.0, "lat": 0.0, "terms": [], "probes": []},
    ]
    batch = pa.RecordBatch.from_pylist(rows, ROUTED)
    for part in (batch, batch.slice(1), batch.slice(2)):
        assert decode(encode(part)).equals(part)
        assert decode(pa.py_buffer(encode(part))).equals(part)


def test_packets_are_rows_of_a_shuffle() -> None:
    found = pa.RecordBatch.from_pylist(
        [{"publication_seq": 1, "publication_id": "p", "subscription_seqs": [2, 5]}], FOUND
    )
    rows = packet_rows([(3, MATCHES, encode(found)), (0, REPORT, b"{}")])
    assert rows.schema == PACKETS
    assert rows.column("destination").to_pylist() == [3, 0]
    assert rows.column("kind").to_pylist() == [MATCHES, REPORT]
    assert decode(rows.column("payload")[0].as_buffer()).equals(found)
    assert packet_rows([]).schema == PACKETS
    assert packet_rows([]).num_rows == 0
