"""Segments give workers their rows, whatever slice of Arrow they come in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.matching.layout import FOREVER
from ps2stream.registry.segments import SEGMENT, begins, bounds_of, ragged_of, rows_of, subscriptions_of

pytestmark = pytest.mark.kernel

Row = dict[str, Any]

rows = st.lists(
    st.fixed_dictionaries(
        {
            "seq_from": st.integers(0, 1000),
            "seq_to": st.sampled_from([FOREVER, 1001]),
            "id": st.text(max_size=3),
            "clauses": st.lists(st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=3), max_size=3),
            "workers": st.lists(st.integers(0, 3), max_size=3),
            **{name: st.floats(-90, 90) for name in ("min_lon", "min_lat", "max_lon", "max_lat")},
        }
    ),
    max_size=8,
)


@given(rows, st.data())
@settings(max_examples=60, deadline=None)
def test_a_slice_of_a_segment_is_read_like_a_segment(drawn: list[Row], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(drawn)))
    stop = data.draw(st.integers(start, len(drawn)))
    segment = pa.RecordBatch.from_pylist(drawn, SEGMENT).slice(start, stop - start)
    part = drawn[start:stop]
    assert begins(segment).tolist() == [i for i, row in enumerate(part) if row["seq_to"] == FOREVER]
    for worker in range(5):
        assert rows_of(segment, worker).tolist() == [
            i for i, row in enumerate(part) if worker in row["workers"]
        ]
    names = ("min_lon", "min_lat", "max_lon", "max_lat")
    assert bounds_of(segment).tolist() == [row[name] for row in part for name in names]
    subs = subscriptions_of(segment)
    assert subs.seq_from.tolist() == [row["seq_from"] for row in part]
    clauses = [
        subs.terms[subs.term_offsets[i] : subs.term_offsets[i + 1]].tolist()
        for i in range(len(subs.term_offsets) - 1)
    ]
    found = [clauses[subs.clause_offsets[i] : subs.clause_offsets[i + 1]] for i in range(len(part))]
    assert found == [row["clauses"] for row in part]


def test_lists_of_one_level_become_values_and_offsets() -> None:
    lists = pa.array([[1], [], [2, 3]], pa.large_list(pa.int32()))
    ragged = ragged_of(lists.slice(1))
    assert ragged.values.tolist() == [2, 3]
    assert ragged.offsets.tolist() == [0, 0, 2]
    assert ragged_of(lists.slice(3)).n_rows == 0
