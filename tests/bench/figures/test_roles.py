"""What is said about merger and registrar follows from the rows."""

from __future__ import annotations

import pytest

from ps2stream_bench.figure import SCALES, Scale
from ps2stream_bench.figures.roles import FIGURE, page
from ps2stream_bench.results import Row


def merger_row(merging_ns: float, writing_ns: float, repetition: int = 0) -> Row:
    case = {"role": "merger", "kind": "q1", "subscriptions": 1_000, "repetition": repetition}
    times = {"grouping_ns": 9.0, "merging_ns": merging_ns, "naming_ns": 20.0, "writing_ns": writing_ns}
    return {**case, **times, "matches_per_publication": 8.0, "found_bytes": 9.0, "parquet_bytes": 9.0}


def registrar_row(updates_per_s: float, kind: str = "q1") -> Row:
    case = {"role": "registrar", "kind": kind, "subscriptions": 1_000, "repetition": 0}
    return {**case, "parsed_per_s": 1e6, "decided_per_s": 4e5, "updates_per_s": updates_per_s}


def expressions_row(compiled_per_s: float, form: str) -> Row:
    case = {"role": "expressions", "form": form, "repetition": 0}
    return {**case, "compiled_per_s": compiled_per_s, "parsed_per_s": 1e4}


@pytest.mark.parametrize(
    ("merging_ns", "writing_ns", "holds"),
    [(40.0, 60.0, [True, True]), (140.0, 200.0, [True, False]), (160.0, 10.0, [False, True])],
)
def test_the_merger_is_held_against_its_two_targets(
    merging_ns: float, writing_ns: float, holds: list[bool]
) -> None:
    said = page([merger_row(merging_ns, writing_ns)])
    assert [verdict.holds for verdict in said.verdicts] == holds
    assert len(said.tables) == 1


def test_the_median_of_the_turns_decides() -> None:
    rows = [merger_row(merging_ns, 10.0, turn) for turn, merging_ns in enumerate([40.0, 50.0, 900.0])]
    assert [verdict.holds for verdict in page(rows).verdicts] == [True, True]


def test_every_kind_has_a_verdict_on_the_registrar() -> None:
    said = page([registrar_row(310_000.0), registrar_row(290_000.0, "q2")])
    assert [verdict.holds for verdict in said.verdicts] == [True, False]
    assert "290,000 updates/s" in said.verdicts[1].ours


def test_forms_are_held_against_the_target_of_flat_ones_or_that_of_parentheses() -> None:
    rates = {"flat": 510_000.0, "flat, Cyrillic": 490_000.0, "parentheses": 210_000.0}
    rows = [expressions_row(rate, form) for form, rate in rates.items()]
    said = page([*rows, expressions_row(190_000.0, "parentheses, Cyrillic")])
    assert [verdict.holds for verdict in said.verdicts] == [True, False, True, False]
    assert "210,000 expressions/s" in said.verdicts[2].ours
    assert len(said.tables) == 1


def test_nothing_is_said_of_no_rows() -> None:
    assert page([]).verdicts == []


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_measures_both_roles_and_expressions(scale: Scale) -> None:
    assert {case["role"] for case in FIGURE.cases(scale)} == {"merger", "registrar", "expressions"}


@pytest.mark.parametrize("scale", SCALES)
def test_the_registrar_is_also_measured_with_regions_that_are_the_whole_world(scale: Scale) -> None:
    kinds = {case["kind"] for case in FIGURE.cases(scale) if case["role"] == "registrar"}
    assert kinds == {"q1", "q2", "q1 world"}
