from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import JournalError
from ps2stream.journal import packets
from ps2stream.journal.packets import (
    checksum,
    cut_to_packets,
    decode_publications,
    decode_updates,
    encode_packet,
    verify,
)
from ps2stream.model.schemas import EVENTS, PUBLICATIONS, UPDATES

MakeEvents = Callable[..., pa.RecordBatch]

_numbers = st.one_of(st.none(), st.floats(allow_nan=False))
_strings = st.one_of(st.none(), st.text(max_size=8))
_events = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["publish", "subscribe", "unsubscribe", "Publish", "", None]),
        **dict.fromkeys(("id", "text", "expression"), _strings),
        **dict.fromkeys(("lat", "lon", "min_lon", "min_lat", "max_lon", "max_lat"), _numbers),
    }
)


@given(st.lists(_events, min_size=1, max_size=12), st.integers(1, 2**62))
@settings(max_examples=80, deadline=None)
def test_decoding_gives_back_the_columns_of_each_kind(rows: list[dict[str, object]], first_seq: int) -> None:
    for number, row in enumerate(rows):
        row["seq"] = first_seq + number
    packet = encode_packet(pa.RecordBatch.from_pylist(rows, schema=EVENTS))
    publications = [
        {name: row[name] for name in PUBLICATIONS.names} for row in rows if row["op"] == "publish"
    ]
    updates = [{name: row[name] for name in UPDATES.names} for row in rows if row["op"] != "publish"]
    assert decode_publications(packet.publications).to_pylist() == publications
    assert decode_updates(packet.updates).to_pylist() == updates
    assert (packet.n_publications, packet.n_updates) == (len(publications), len(updates))
    assert (packet.first_seq, packet.last_seq) == (first_seq, first_seq + len(rows) - 1)


def test_nan_and_infinity_survive() -> None:
    row = {"seq": 1, "op": "publish", "lat": float("nan"), "lon": float("-inf")}
    decoded = decode_publications(
        encode_packet(pa.RecordBatch.from_pylist([row], schema=EVENTS)).publications
    )
    assert str(decoded.column("lat")[0].as_py()) == "nan"
    assert decoded.column("lon")[0].as_py() == float("-inf")


def test_an_empty_half_is_no_bytes_and_decodes_to_an_empty_batch() -> None:
    packet = encode_packet(pa.RecordBatch.from_pylist([{"seq": 1, "op": "publish"}], schema=EVENTS))
    assert packet.updates is None
    assert decode_updates(packet.updates).schema == UPDATES
    assert decode_updates(packet.updates).num_rows == 0
    assert decode_publications(None).schema == PUBLICATIONS


def test_a_slice_stores_only_its_own_rows() -> None:
    rows = [{"seq": number, "op": "publish", "text": "x" * 1_000} for number in range(1, 101)]
    batch = pa.RecordBatch.from_pylist(rows, schema=EVENTS)
    packet = encode_packet(batch.slice(50, 1))
    assert packet.publications is not None
    assert len(packet.publications) < 4_000
    assert decode_publications(packet.publications).column("seq").to_pylist() == [51]


def test_what_is_no_stream_of_ours_is_refused() -> None:
    publication = pa.RecordBatch.from_pylist([{"seq": 1, "op": "publish"}], schema=EVENTS)
    encoded = encode_packet(publication).publications
    assert encoded is not None
    with pytest.raises(JournalError, match="updates of a packet must have the columns"):
        decode_updates(encoded)
    for garbage in (b"", b"garbage", encoded[:40], encoded[: len(encoded) // 2]):
        with pytest.raises(JournalError, match="must be an Arrow IPC stream"):
            decode_publications(garbage)


def test_packets_are_cut_by_events_and_bytes_in_order(
    make_events: MakeEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packets, "MAX_PACKET_EVENTS", 10)
    monkeypatch.setattr(packets, "MAX_PACKET_BYTES", 5_000)
    # Chunks of one row must not become packets of one row.
    many = pa.Table.from_batches([make_events(23).slice(row, 1) for row in range(23)])
    assert [batch.num_rows for batch in cut_to_packets(many)] == [10, 10, 3]
    long = pa.Table.from_batches([make_events(20, text="x" * 1_000)])
    parts = list(cut_to_packets(long))
    assert all(part.num_rows <= 5 for part in parts)
    assert pa.Table.from_batches(parts).equals(long)
    assert [
        part.num_rows for part in cut_to_packets(pa.Table.from_batches([make_events(2, text="x" * 9_000)]))
    ] == [
        1,
        1,
    ]
    assert list(cut_to_packets(many.slice(0, 0))) == []


def test_a_checksum_covers_the_payload_and_every_number(make_events: MakeEvents) -> None:
    table = pa.Table.from_batches([make_events(6)])
    seqs = pa.array(range(1, 7), pa.int64())
    encoded = encode_packet(table.set_column(0, "seq", seqs).combine_chunks().to_batches()[0])
    packet = encoded.at_position(position=4, appended_us=5)
    sums = {
        "updates_crc32": checksum(packet, packet.updates),
        "publications_crc32": checksum(packet, packet.publications),
    }
    assert verify(packet, **sums) is packet
    for name in ("position", "first_seq", "last_seq", "appended_us", "n_publications", "n_updates"):
        wrong: dict[str, Any] = {name: 99}
        broken = verify(replace(packet, **wrong), **sums)
        assert (broken.updates, broken.publications) == (None, None), name
    assert packet.updates is not None
    flipped = verify(replace(packet, updates=packet.updates[:-1] + b"\x01"), **sums)
    assert flipped.damage == "packet 4 of the journal is damaged: wrong checksum of updates"
    assert (flipped.updates, flipped.publications) == (None, packet.publications)
    odd = replace(packet, first_seq="text", updates=1.5)  # type: ignore[arg-type]
    assert verify(odd, **sums).damage is not None
