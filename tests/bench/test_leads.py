"""Leads are judged on every workload by itself, and what was not measured is not judged."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ps2stream_bench.contest import RATE, WORKERS_RATE
from ps2stream_bench.leads import (
    NOT_MEASURED,
    all_hold,
    hardest,
    lead,
    lead_told,
    on_all,
    overall,
    overall_told,
    wins,
    wins_told,
)
from ps2stream_bench.results import Row


def rows_of(rates: Mapping[str, Mapping[str, float]], field: str = RATE) -> list[Row]:
    return [
        {
            "case": workload,
            "workload": workload,
            "partitioner": name,
            "repetition": 0,
            WORKERS_RATE: 2 * rate,
            field: rate,
        }
        for workload, by_name in rates.items()
        for name, rate in by_name.items()
    ]


RATES = {"US-Q2": {"a": 400.0, "b": 100.0, "c": 200.0}, "UK-Q2": {"a": 90.0, "b": 100.0, "c": 80.0}}


def is_faster(each: float) -> bool:
    return each > 1


def test_a_lead_compares_rows_of_one_turn_and_tells_its_interval() -> None:
    turns = [(200.0, 100.0, 300.0, 100.0), (30.0, 10.0, 30.0, 10.0)]
    rows = [
        {"case": "c", "partitioner": name, "repetition": repetition, RATE: rate, WORKERS_RATE: by_workers}
        for repetition, (a, b, a_alone, b_alone) in enumerate(turns)
        for name, rate, by_workers in (("a", a, a_alone), ("b", b, b_alone))
    ]
    assert lead(rows, "a", "b").median == pytest.approx(2.5)
    assert lead_told(rows, "a", "b") == "a 2.50 [2.00 to 3.00] times b (3.00 by workers alone)"


def test_a_claim_fails_where_one_workload_refutes_it_though_the_other_leads_by_more() -> None:
    told, holds = on_all(rows_of(RATES), dict.fromkeys(RATES, (("a", "b"),)), is_faster)
    assert holds is False
    assert told == (
        "US-Q2: a 4.00 times b (4.00 by workers alone); UK-Q2: a 0.90 times b (0.90 by workers alone)"
    )


def test_a_workload_without_rows_leaves_a_claim_open_unless_another_refutes_it() -> None:
    us, uk = (rows_of({workload: RATES[workload]}) for workload in ("US-Q2", "UK-Q2"))
    pairs = dict.fromkeys(RATES, (("a", "b"),))
    assert on_all(us, pairs, is_faster) == (
        "US-Q2: a 4.00 times b (4.00 by workers alone); UK-Q2: not measured",
        None,
    )
    assert on_all(uk, pairs, is_faster)[1] is False
    assert on_all([], pairs, is_faster) == (NOT_MEASURED, None)


def test_all_hold_only_if_each_is_known_to() -> None:
    assert all_hold([True, True]) is True
    assert all_hold([True, None]) is None
    assert all_hold([None, False]) is False
    assert all_hold([]) is None


def test_other_figures_than_rates_are_told_with_their_unit() -> None:
    rows = rows_of({"US-Q2": {"a": 30.0, "b": 20.0}}, "latency_mean_ms")
    assert lead_told(rows, "a", "b", "latency_mean_ms") == "a 1.50 times b (30.00 ms versus 20.00 ms)"


def test_the_hardest_rival_is_the_fastest_or_the_one_that_needs_least() -> None:
    rows = rows_of(RATES)
    assert hardest(rows, "US-Q2", "a", ["b", "c"]) == ("a", "c")
    assert hardest(rows, "UK-Q2", "a", ["b", "c"]) == ("a", "b")
    memory = rows_of(RATES, "worker_mb")
    assert hardest(memory, "US-Q2", "a", ["b", "c"], "worker_mb") == ("a", "b")
    assert hardest(rows, "US-Q2", "a", ["b", "unknown"]) == ("a", "unknown")


def test_workloads_count_the_same_over_all() -> None:
    rows = rows_of({"US-Q1": {"a": 4000.0, "b": 1000.0}, "UK-Q1": {"a": 1.0, "b": 4.0}})
    assert overall(rows, "a", "b") == pytest.approx(1.0)
    assert overall(rows, "a", "unknown") is None
    assert overall_told(rows, "a", ["b", "unknown"]) == "geometric mean over workloads: 1.00 times b"


def test_a_tie_is_nobodys_win() -> None:
    rows = rows_of({"US-Q1": {"a": 5.0, "b": 5.0}, "US-Q2": {"a": 6.0, "b": 5.0}, "US-Q3": {"a": 1.0}})
    assert wins(rows, "a", ["b"]) == {"US-Q1": False, "US-Q2": True}
    assert wins(rows, "b", ["a"]) == {"US-Q1": False, "US-Q2": False}
    assert wins_told(wins(rows, "a", ["b"])) == "on 1 of 2 workloads (US-Q2)"


def test_the_least_memory_wins() -> None:
    rows = rows_of({"US-Q1": {"a": 4.0, "b": 5.0}}, "worker_mb")
    assert wins(rows, "a", ["b"], "worker_mb") == {"US-Q1": True}
