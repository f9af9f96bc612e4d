"""Routed packets say what a worker must know."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.errors import StateError
from ps2stream.model.schemas import empty
from ps2stream.resident.routed import RoutedHeader, from_record, to_record
from ps2stream.roles.packets import ROUTED, encode

int64s = st.integers(-(1 << 63), (1 << 63) - 1)
headers = st.builds(
    RoutedHeader,
    st.integers(0, 99),
    int64s,
    int64s,
    st.integers(0, 9),
    st.booleans(),
    int64s,
    st.lists(st.tuples(int64s, st.integers(1, 99)), max_size=4).map(tuple),
)


@given(headers)
def test_a_packet_and_its_header_come_back_as_they_were(header: RoutedHeader) -> None:
    row = {"seq": 7, "id": "p", "lon": 1.0, "lat": 2.0, "terms": [3, 4], "probes": [1, 0]}
    packet = pa.RecordBatch.from_pylist([row], schema=ROUTED)
    read, said = from_record(to_record(packet, header))
    assert read.to_pylist() == packet.to_pylist()
    assert said == header


def test_a_heartbeat_is_a_packet_of_nothing() -> None:
    packet, header = from_record(to_record(empty(ROUTED), RoutedHeader(2, 11, -5)))
    assert packet.num_rows == 0
    assert header == RoutedHeader(2, 11, -5)


@pytest.mark.parametrize("record", [b"", b"no packet", encode(empty(ROUTED))])
def test_what_is_no_packet_is_an_error(record: bytes) -> None:
    with pytest.raises(StateError, match="a routed packet cannot be read"):
        from_record(record)
