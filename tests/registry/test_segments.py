"""Segments give workers their rows, whatever slice of Arrow they come in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.arrow import ragged_of
from ps2stream.matching.contract import FOREVER, Subscriptions
from ps2stream.registry.segments import (
    BEGIN,
    DROP,
    END,
    MOVE,
    SEGMENT,
    bare_rows,
    begin_rows,
    bounds_of,
    changes,
    concerning,
    move_rows,
    rows_of,
    subscriptions_of,
)
from sizes import examples

pytestmark = pytest.mark.kernel

Row = dict[str, Any]

rows = st.lists(
    st.fixed_dictionaries(
        {
            "change": st.sampled_from([BEGIN, END, MOVE, DROP]),
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
@settings(max_examples=examples(60), deadline=None)
def test_a_slice_of_a_segment_is_read_like_a_segment(drawn: list[Row], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(drawn)))
    stop = data.draw(st.integers(start, len(drawn)))
    segment = pa.RecordBatch.from_pylist(drawn, SEGMENT).slice(start, stop - start)
    part = drawn[start:stop]
    for change in (BEGIN, END, MOVE, DROP):
        some = changes(segment, change)
        assert some.schema == SEGMENT
        assert some.equals(segment.take(pa.array(_rows(part, change), pa.int64())))
    for worker in range(5):
        assert rows_of(segment, worker).tolist() == [
            i for i, row in enumerate(part) if worker in row["workers"]
        ]
        concerned = concerning(segment, worker)
        mine = [(row, each) for row, each in enumerate(part) if worker in each["workers"]]
        dropped = [each["seq_from"] for _, each in mine if each["change"] == DROP]
        assert concerned.dropped.tolist() == dropped
        assert concerned.stored.tolist() == [row for row, each in mine if each["change"] in (BEGIN, MOVE)]
        ends = [(each["seq_from"], each["seq_to"]) for _, each in mine if each["change"] == END]
        assert list(zip(concerned.ended.tolist(), concerned.seq_to.tolist(), strict=True)) == ends
        assert concerned.n_rows == len(mine)
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


def _rows(drawn: list[Row], change: int) -> list[int]:
    return [i for i, row in enumerate(drawn) if row["change"] == change]


@given(rows.filter(lambda drawn: all(row["clauses"] for row in drawn)))
@settings(max_examples=examples(40), deadline=None)
def test_what_moves_is_as_complete_as_what_begins(drawn: list[Row]) -> None:
    segment = pa.RecordBatch.from_pylist(drawn, SEGMENT)
    subs = subscriptions_of(segment)
    ids, workers = segment.column("id"), segment.column("workers")
    expressions = pa.array([f"expression {i}" for i in range(len(drawn))], pa.string())
    begun = begin_rows(subs, ids, expressions, workers)
    moved = move_rows(subs, ids, workers)
    for rows_of_all, change in ((begun, BEGIN), (moved, MOVE)):
        assert rows_of_all.schema == SEGMENT
        assert set(rows_of_all.column("change").to_pylist()) <= {change}
        assert set(rows_of_all.column("seq_to").to_pylist()) <= {FOREVER}, "whatever it was stored with"
        for name in ("seq_from", "id", "clauses", "workers", "min_lon", "min_lat", "max_lon", "max_lat"):
            assert rows_of_all.column(name).to_pylist() == [row[name] for row in drawn], name
    assert begun.column("expression").equals(expressions)
    assert moved.column("expression").null_count == len(drawn), "the row that began it has it"


@pytest.mark.parametrize("change", [END, DROP])
def test_ends_and_drops_need_nothing_but_seqs(change: int) -> None:
    workers = pa.array([[0, 2], [1]], pa.large_list(pa.int32()))
    ids = pa.array(["a", "b"], pa.string())
    bare = bare_rows(change, np.array([5, 7]), np.array([9, FOREVER]), ids, workers)
    assert bare.schema == SEGMENT
    assert bare.column("change").to_pylist() == [change] * 2
    assert bare.column("seq_from").to_pylist() == [5, 7]
    assert bare.column("seq_to").to_pylist() == [9, FOREVER]
    assert bare.column("clauses").to_pylist() == [[], []]
    assert bare.column("min_lon").null_count == 2
    assert rows_of(bare, 2).tolist() == [0]
    # Workers read whole segments: rows of all kinds have to come as one.
    full = begin_rows(_one_subscription(), pa.array(["c"]), pa.array(["x"]), workers[1:])
    both = pa.concat_batches([bare, full, bare])
    subs = subscriptions_of(both)
    assert subs.clause_offsets.tolist() == [0, 0, 0, 2, 2, 2]
    assert subs.terms.tolist() == [3, 4, 5]


def test_rows_of_nothing_are_rows() -> None:
    none = np.empty(0, np.int64)
    no_ids, nobody = pa.array([], pa.string()), pa.array([], pa.large_list(pa.int32()))
    subs = subscriptions_of(pa.RecordBatch.from_pylist([], SEGMENT))
    for batch in (move_rows(subs, no_ids, nobody), bare_rows(DROP, none, none, no_ids, nobody)):
        assert batch.schema == SEGMENT
        assert batch.num_rows == 0


def _one_subscription() -> Subscriptions:
    return Subscriptions(
        np.array([3]),
        np.array([FOREVER]),
        np.array([0.0, 1.0, 2.0, 3.0]),
        np.array([0, 2]),
        np.array([0, 1, 3]),
        np.array([3, 4, 5], np.uint64),
    )


def test_lists_of_one_level_become_values_and_offsets() -> None:
    lists = pa.array([[1], [], [2, 3]], pa.large_list(pa.int32()))
    ragged = ragged_of(lists.slice(1))
    assert ragged.values.tolist() == [2, 3]
    assert ragged.offsets.tolist() == [0, 0, 2]
    assert ragged_of(lists.slice(3)).n_rows == 0
