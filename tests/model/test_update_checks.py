"""The kernel lets through what the rules do, row by row, whatever slice of Arrow it looks at."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.model.events import check_updates
from ps2stream.model.schemas import UPDATES
from sizes import examples

pytestmark = pytest.mark.kernel

Row = dict[str, Any]
BOUNDS = ("min_lon", "min_lat", "max_lon", "max_lat")

corners = st.sampled_from([0.0, 1.0, -1.0, 90.0, -90.0, 90.5, 180.0, -180.0, 181.0, math.nan, math.inf, None])
good_rows = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["subscribe", "unsubscribe"]),
        "id": st.sampled_from(["a", "ü", "i" * 1_024]),
        "expression": st.sampled_from(["fire", "café AND fire", ""]),
        **{name: st.sampled_from([0.0, 1.0]) for name in ("min_lon", "max_lon")},
        "min_lat": st.just(-1.0),
        "max_lat": st.just(2.0),
    }
)
any_rows = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["subscribe", "unsubscribe", "publish", "subscribes", "", None]),
        "id": st.sampled_from(["a", "", "i" * 1_025, None]),
        "expression": st.sampled_from(["fire", "x" * 16_384, "x" * 16_385, None]),
        **dict.fromkeys(BOUNDS, corners),
    }
)


def _is_good(row: Row) -> bool:
    if row["op"] not in ("subscribe", "unsubscribe") or not 1 <= len((row["id"] or "").encode()) <= 1_024:
        return False
    if row["op"] == "unsubscribe":
        return True
    west, south, east, north = (math.nan if row[name] is None else row[name] for name in BOUNDS)
    in_world = abs(west) <= 180 and abs(east) <= 180 and abs(south) <= 90 and abs(north) <= 90
    is_read = row["expression"] is not None and len(row["expression"].encode()) <= 16_384
    return in_world and south <= north and is_read


@given(st.lists(st.one_of(good_rows, any_rows), max_size=20), st.integers(0, 9))
@settings(max_examples=examples(200), deadline=None)
def test_what_the_rules_allow_goes_on_and_the_rest_is_rejected(rows: list[Row], start: int) -> None:
    numbered = [{**row, "seq": seq} for seq, row in enumerate(rows)]
    batch = pa.RecordBatch.from_pylist(numbered, UPDATES).slice(start)
    good = [row for row in numbered[start:] if _is_good(row)]
    begun = [row for row in good if row["op"] == "subscribe"]
    valid, rejected = check_updates(batch)
    assert valid.seq.to_pylist() == [row["seq"] for row in good]
    assert valid.is_subscribe.to_pylist() == [row["op"] == "subscribe" for row in good]
    assert valid.ids.to_pylist() == [row["id"] for row in good]
    kept = [row["expression"] if row in begun else None for row in good]
    assert valid.expressions.to_pylist() == kept
    assert [good[row]["seq"] for row in valid.begins] == [row["seq"] for row in begun]
    spans = valid.spans
    expressions = [spans.data[spans.offsets[i] : spans.offsets[i + 1]].tobytes() for i in range(len(begun))]
    assert expressions == [row["expression"].encode() for row in begun]
    corners_of = [[corner[int(row)].as_py() for corner in valid.corners] for row in valid.begins]
    assert corners_of == [[row[name] for name in BOUNDS] for row in begun]
    assert rejected.num_rows == len(numbered[start:]) - len(good)


def test_bytes_under_a_null_are_not_seen() -> None:
    hidden = pa.Array.from_buffers(
        pa.string(),
        3,
        [
            pa.py_buffer(b"\x05"),
            pa.array([0, 3, 6, 9], pa.int32()).buffers()[1],
            pa.py_buffer(b"one\xff\xff\xfftwo"),
        ],
    )
    flat = [pa.array([0.0] * 3)] * 4
    columns = [
        pa.array([1, 2, 3]),
        pa.array(["subscribe", "unsubscribe", "subscribe"]),
        pa.array(["a", "b", "c"]),
    ]
    batch = pa.RecordBatch.from_arrays([*columns, hidden, *flat], schema=UPDATES)
    valid, rejected = check_updates(batch)
    assert rejected.num_rows == 0
    assert valid.spans.data.tobytes() == b"onetwo"
