"""Packets carry batches through a shuffle unchanged."""

from __future__ import annotations

import pyarrow as pa

from ps2stream.roles.packets import MAX_PACKET_BYTES, ROUTED, decode, encode, fitting


def test_a_batch_comes_out_of_a_packet_as_it_went_in() -> None:
    rows = [
        {"seq": 1, "id": "p", "lon": 1.5, "lat": -2.0, "terms": [3, (1 << 64) - 1], "probes": [1, 0]},
        {"seq": 2, "id": "ü", "lon": 0.0, "lat": 0.0, "terms": [], "probes": []},
    ]
    batch = pa.RecordBatch.from_pylist(rows, ROUTED)
    for part in (batch, batch.slice(1), batch.slice(2)):
        assert decode(encode(part)).equals(part)
        assert decode(pa.py_buffer(encode(part))).equals(part)


def test_rows_are_cut_into_packets_that_hold_no_more_than_they_show() -> None:
    row = {"seq": 1, "id": "p" * 100, "lon": 1.5, "lat": -2.0, "terms": [3] * 50, "probes": [1] * 50}
    batch = pa.RecordBatch.from_pylist([row] * 5_000, ROUTED)
    packets = [encode(part) for part in fitting(batch)]
    assert len(packets) > 1
    assert max(map(len, packets)) < MAX_PACKET_BYTES + 10_000
    assert pa.concat_batches([decode(packet) for packet in packets]).equals(batch)


def test_one_row_may_be_larger_than_a_packet_and_stays_whole() -> None:
    rows = [{"seq": n, "id": "p" * (1 << 20) if n == 1 else "p"} for n in range(3)]
    parts = list(fitting(pa.RecordBatch.from_pylist(rows, ROUTED)))
    assert [part.column("seq").to_pylist() for part in parts] == [[0], [1], [2]]


def test_rows_whose_lists_are_empty_do_not_carry_the_lists_of_others() -> None:
    n = 30_000
    clauses = pa.large_list(pa.large_list(pa.uint64()))
    empty_lists = pa.array([[]] * n, clauses)
    full_lists = pa.array([[[1], [2], [3], [4]]] * n, clauses)
    rows = pa.concat_batches(
        [pa.record_batch({"seq": range(n), "clauses": lists}) for lists in (empty_lists, full_lists)]
    )
    parts = list(fitting(rows))
    assert max(len(encode(part)) for part in parts) < 1_000_000
    assert pa.concat_batches(parts).equals(rows)


def test_columns_that_share_their_bytes_are_cut_as_if_they_did_not() -> None:
    shared = pa.array(range(60_000), pa.int64())
    rows = pa.record_batch({"one": shared, "two": shared, "three": shared})
    assert rows.get_total_buffer_size() < MAX_PACKET_BYTES < rows.nbytes
    parts = list(fitting(rows))
    assert max(len(encode(part)) for part in parts) < 1_000_000
    assert pa.Table.from_batches(parts).combine_chunks() == pa.Table.from_batches([rows])
