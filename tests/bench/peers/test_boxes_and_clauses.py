from __future__ import annotations

import numpy as np
import pytest

from ps2stream.matcher import event_table
from ps2stream.model.space import Region
from ps2stream.model.subscriptions import Subscription
from ps2stream_bench.peers.boxes_and_clauses import CLAUSES, clause_table, runs

BOX = Region(1.0, 2.0, 3.0, 4.0)


def test_a_clause_is_a_row_with_its_terms_as_words() -> None:
    events = event_table(
        [Subscription("a", "Fire AND (smoke OR covid-19)", BOX), Subscription("b", "x", BOX)]
    )
    rows = clause_table(events, ())
    assert rows.schema == CLAUSES
    found = {(row["subscription_seq"], frozenset(row["terms"])) for row in rows.to_pylist()}
    assert found == {
        (1, frozenset({"fire", "smoke"})),
        (1, frozenset({"fire", "covid", "19"})),
        (2, frozenset({"x"})),
    }
    assert rows.num_rows == 3
    assert {(row["min_lon"], row["min_lat"], row["max_lon"], row["max_lat"]) for row in rows.to_pylist()} == {
        (1.0, 2.0, 3.0, 4.0)
    }


def test_stop_words_leave_the_clauses() -> None:
    rows = clause_table(event_table([Subscription("a", "the AND fire OR smoke", BOX)]), ["The"])
    assert sorted(rows["terms"].to_pylist()) == [["fire"], ["smoke"]]


def test_a_region_across_the_antimeridian_is_two_boxes() -> None:
    crossing = Subscription("a", "fire", Region(170.0, 2.0, -160.0, 4.0))
    rows = clause_table(event_table([crossing, Subscription("b", "smoke", BOX)]), ())
    sides = [
        (row["subscription_seq"], row["min_lon"], row["max_lon"], row["terms"]) for row in rows.to_pylist()
    ]
    assert sorted(sides) == [
        (1, -180.0, -160.0, ["fire"]),
        (1, 170.0, 180.0, ["fire"]),
        (2, 1.0, 3.0, ["smoke"]),
    ]


def test_an_expression_that_does_not_parse_is_named() -> None:
    events = event_table([Subscription("good", "fire", BOX), Subscription("bad", "fire", BOX)])
    at = events.schema.get_field_index("expression")
    broken = events.set_column(at, "expression", [["fire", "fire AND"]])
    with pytest.raises(ValueError, match="subscription bad must be valid"):
        clause_table(broken, ())


def test_runs_count_through_each_row_and_skip_empty_ones() -> None:
    numbers, rows = runs(np.array([5, 7, 0]), np.array([7, 7, 3]))
    assert numbers.tolist() == [5, 6, 0, 1, 2]
    assert rows.tolist() == [0, 0, 2, 2, 2]
