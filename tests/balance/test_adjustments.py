"""Records of adjustments say the same after they were written down."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.balance.adjustments import (
    Adjustment,
    StepRecord,
    adjustment_from_json,
    adjustment_to_json,
    step_records,
)
from ps2stream.balance.local_adjustment import Step
from ps2stream.errors import StateError

figures = st.floats(0, 1e18)
loads = st.lists(figures, max_size=4).map(tuple)
counts = st.integers(0, 1 << 50)
steps = st.builds(
    StepRecord,
    st.sampled_from(["split", "merge", "move"]),
    st.integers(0, 9),
    st.integers(0, 9),
    counts,
    st.lists(counts, max_size=3).map(tuple),
    figures,
    counts,
)
adjustments = st.builds(
    Adjustment,
    kind=st.sampled_from(["local", "switch", "unite"]),
    batch_id=counts,
    at=st.text(max_size=5),
    reason=st.text(max_size=20),
    plan_before=counts,
    plan_after=counts,
    loads_before=loads,
    loads_expected=loads,
    loads_after=loads,
    selector=st.sampled_from(["", "gr"]),
    steps=st.lists(steps, max_size=3).map(tuple),
    n_subscriptions=counts,
    n_bytes=counts,
    selection_s=figures,
    pause_s=figures,
    migration_s=figures,
    n_delayed=counts,
)


@given(adjustments)
def test_a_record_is_read_as_it_was_written(adjustment: Adjustment) -> None:
    text = adjustment_to_json(adjustment)
    assert adjustment_from_json(text) == adjustment
    assert hash(adjustment_from_json(text)) == hash(adjustment), "lists are tuples again"
    assert "\n" not in text


def test_a_record_is_plain_json() -> None:
    record = Adjustment("local", 7, "now", "because", 1, 2, (2.0, 1.0), selector="gr")
    fields = json.loads(adjustment_to_json(record))
    assert fields["kind"] == "local"
    assert fields["loads_before"] == [2.0, 1.0]
    assert fields["loads_after"] == [], "not known yet"


@pytest.mark.parametrize("text", ["", "{", "7", "null", "[]", "{}", '{"steps": []}', '{"steps": [{}]}'])
def test_what_is_no_record_is_an_error(text: str) -> None:
    with pytest.raises(StateError, match="a record of an adjustment cannot be read"):
        adjustment_from_json(text)


def test_a_record_with_a_field_too_many_or_too_few_is_an_error() -> None:
    whole = json.loads(adjustment_to_json(Adjustment("switch", 1, "", "", 1, 2, ())))
    for damaged in (
        {**whole, "colour": "red"},
        {name: value for name, value in whole.items() if name != "reason"},
        {**whole, "loads_after": None},
        {**whole, "steps": [{"phase": "move"}]},
    ):
        with pytest.raises(StateError):
            adjustment_from_json(json.dumps(damaged))


def test_of_a_step_with_many_cells_some_are_named_and_all_are_counted() -> None:
    few = Step("move", 3, 1, (4, 9), 12.5, 300)
    many = few._replace(phase="merge", cells=tuple(range(100)))
    first, second = step_records([few, many])
    assert first == StepRecord("move", 3, 1, 2, (4, 9), 12.5, 300)
    assert (second.phase, second.n_cells, second.cells) == ("merge", 100, tuple(range(20)))
    assert step_records([]) == ()
    record = replace(Adjustment("local", 1, "", "", 1, 2, ()), steps=(first, second))
    assert adjustment_from_json(adjustment_to_json(record)).steps == (first, second)
