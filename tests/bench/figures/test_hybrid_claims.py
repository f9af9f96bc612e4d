"""What the paper claims of hybrid partitioning is judged by the rows."""

from __future__ import annotations

import pytest

from ps2stream_bench.figure import Verdict
from ps2stream_bench.figures.hybrid_claims import verdicts
from ps2stream_bench.results import Row

Triple = tuple[float, float, float]
Figures = dict[str, Triple]
KINDS = ("Q1", "Q2", "Q3")
NAMES = ("hybrid", "metric", "kd-tree")


def about(workload: str, name: str) -> Row:
    country, kind = workload.lower().split("-")
    return {
        "case": workload,
        "workload": workload,
        "country": country,
        "kind": kind,
        "live": 100_000,
        "partitioner": name,
        "repetition": 0,
    }


def rates(tuples_per_s: Figures, dispatcher_mb: Figures, worker_mb: Figures) -> list[Row]:
    return [
        {
            **about(workload, name),
            "projected_tuples_per_s": tuples_per_s[workload][index],
            "worker_tuples_per_s": tuples_per_s[workload][index],
            "dispatcher_mb": dispatcher_mb[workload][index],
            "worker_mb": worker_mb[workload][index],
        }
        for workload in tuples_per_s
        for index, name in enumerate(NAMES)
    ]


def latencies(mean_ms: Figures) -> list[Row]:
    return [
        {**about(workload, name), "clock": "projected", "latency_mean_ms": mean_ms[workload][index]}
        for workload in mean_ms
        for index, name in enumerate(NAMES)
    ]


def on_both(q1: Triple, q2: Triple, q3: Triple) -> Figures:
    return {
        f"{country}-{kind}": each
        for country in ("US", "UK")
        for kind, each in zip(KINDS, (q1, q2, q3), strict=True)
    }


# Figures of hybrid, metric and kd-tree.
GOOD_RATES = on_both((200.0, 100.0, 190.0), (270.0, 265.0, 200.0), (260.0, 200.0, 200.0))
GOOD_DISPATCHERS = on_both((4.0, 5.0, 3.0), (9.0, 6.0, 3.5), (7.0, 6.0, 3.0))
GOOD_WORKERS = on_both((5.0, 6.0, 5.5), (5.0, 6.0, 7.0), (6.0, 5.9, 6.1))
GOOD_LATENCY = {
    **on_both((15.0, 15.5, 16.0), (15.0, 15.0, 25.0), (15.0, 14.5, 16.0)),
    "UK-Q1": (15.0, 407.0, 16.0),
}

BAD_RATES = on_both((180.0, 170.0, 190.0), (190.0, 180.0, 200.0), (210.0, 200.0, 205.0))
BAD_DISPATCHERS = on_both((24.0, 5.0, 6.0), (9.0, 6.0, 6.5), (7.0, 6.0, 6.1))
BAD_WORKERS = on_both((50.0, 50.0, 55.0), (50.0, 50.0, 70.0), (58.0, 59.0, 61.0))
BAD_LATENCY = on_both((15.0, 12.0, 16.0), (15.0, 13.0, 15.0), (15.0, 14.0, 15.0))

CLAIMS = [
    "hybrid has the best throughput overall",
    "hybrid has the best throughput on every workload",
    "Q3: hybrid is 30 % faster than metric",
    "Q3: hybrid is 30 % faster than kd-tree",
    "US-Q1: hybrid is similar to kd-tree, slightly faster (above 1, up to 1.15 times)",
    "US-Q1: hybrid and kd-tree are much faster than metric (1.2 times or more)",
    "Q2: hybrid and metric are faster than kd-tree",
    "hybrid's latency is the smallest, or within 10 % of it, everywhere",
    "Q2: kd-tree's latency is noticeably larger than hybrid's (1.2 times or more)",
    "Q2: kd-tree's latency is noticeably larger than metric's (1.2 times or more)",
    "metric's latency is like hybrid's (within 10 %) on all workloads but UK-Q1",
    "UK-Q1: metric's latency is far above hybrid's (2 times or more)",
    "a dispatcher needs less than 1000 MB",
    "kd-tree's dispatchers need the least memory",
    "US: hybrid's dispatchers need most memory on Q2",
    "UK: hybrid's dispatchers need most memory on Q2",
    "hybrid's workers need the least memory in most cases",
    "all three methods need little memory of workers "
    "(less than the 3,750 MB of a machine of the paper's cluster)",
]


def judged(rate_rows: list[Row], latency_rows: list[Row]) -> dict[str, bool | None]:
    return {verdict.claim: verdict.holds for verdict in verdicts(rate_rows, latency_rows)}


def of(claim: str, rate_rows: list[Row], latency_rows: list[Row]) -> Verdict:
    (found,) = (each for each in verdicts(rate_rows, latency_rows) if each.claim == claim)
    return found


def test_figures_like_the_papers_confirm_all_its_claims() -> None:
    found = judged(rates(GOOD_RATES, GOOD_DISPATCHERS, GOOD_WORKERS), latencies(GOOD_LATENCY))
    assert found == dict.fromkeys(CLAIMS, True)


def test_other_figures_refute_all_claims() -> None:
    found = judged(rates(BAD_RATES, BAD_DISPATCHERS, BAD_WORKERS), latencies(BAD_LATENCY))
    assert found == dict.fromkeys(CLAIMS, False)


@pytest.mark.parametrize(("workload", "claim"), [("UK-Q3", CLAIMS[2]), ("UK-Q2", CLAIMS[6])])
def test_one_country_is_enough_to_refute_a_claim_about_both(workload: str, claim: str) -> None:
    mixed = {**GOOD_RATES, workload: BAD_RATES[workload]}
    assert of(claim, rates(mixed, GOOD_DISPATCHERS, GOOD_WORKERS), []).holds is False


def test_one_country_is_enough_to_refute_a_claim_about_latency() -> None:
    mixed = {**GOOD_LATENCY, "UK-Q2": BAD_LATENCY["UK-Q2"]}
    assert of(CLAIMS[8], [], latencies(mixed)).holds is False
    assert of(CLAIMS[9], [], latencies(mixed)).holds is False


def test_overall_is_a_mean_of_ratios_and_every_workload_another_claim() -> None:
    mixed = {**GOOD_RATES, "UK-Q3": (195.0, 200.0, 200.0)}
    rows = rates(mixed, GOOD_DISPATCHERS, GOOD_WORKERS)
    assert of(CLAIMS[0], rows, []).holds is True
    assert "fastest on 5 of 6 workloads" in of(CLAIMS[0], rows, []).ours
    assert of(CLAIMS[1], rows, []).holds is False


@pytest.mark.parametrize(("hybrid", "holds"), [(99.0, False), (100.0, False), (115.0, True), (116.0, False)])
def test_a_slight_lead_is_neither_none_nor_a_large_one(hybrid: float, holds: bool) -> None:
    mixed = {**GOOD_RATES, "US-Q1": (hybrid, 50.0, 100.0)}
    assert of(CLAIMS[4], rates(mixed, GOOD_DISPATCHERS, GOOD_WORKERS), []).holds is holds


def test_memory_is_judged_at_the_papers_number_of_subscriptions() -> None:
    large = {**GOOD_DISPATCHERS, "UK-Q2": (101.0, 100.0, 99.0)}
    found = of(CLAIMS[12], rates(GOOD_RATES, large, GOOD_WORKERS), [])
    assert found.holds is False
    assert found.ours == (
        "most on UK-Q2 with hybrid: 101.0 MB, 1,010 bytes a subscription of 100,000; "
        "in proportion 10,100 MB for 10,000,000 (not measured)"
    )
    workers = of(CLAIMS[17], rates(GOOD_RATES, large, GOOD_WORKERS), [])
    assert "7.0 MB, 560 bytes a subscription" in workers.ours


def test_memory_of_a_few_subscriptions_tells_nothing_of_millions() -> None:
    rows = [{**row, "live": 800} for row in rates(GOOD_RATES, GOOD_DISPATCHERS, GOOD_WORKERS)]
    found = of(CLAIMS[12], rows, [])
    assert found.holds is None
    assert found.ours.endswith("a subscription of 800, which are too few to tell of 10,000,000")


def test_memory_at_the_papers_size_is_taken_as_measured() -> None:
    papers = {"q1": 5_000_000, "q2": 10_000_000, "q3": 10_000_000}
    rows = [
        {**row, "live": papers[row["kind"]], "dispatcher_mb": 100 * row["dispatcher_mb"]}
        for row in rates(GOOD_RATES, GOOD_DISPATCHERS, GOOD_WORKERS)
    ]
    found = of(CLAIMS[12], rows, [])
    assert found.holds is True
    assert found.ours == "most on US-Q2 with hybrid: 900.0 MB, 90 bytes a subscription of 10,000,000"


def test_who_is_equal_to_the_best_is_not_the_best() -> None:
    alike = on_both((5.0, 5.0, 5.0), (5.0, 5.0, 5.0), (5.0, 5.0, 5.0))
    found = judged(rates(alike, alike, alike), [])
    assert found["hybrid's workers need the least memory in most cases"] is False
    assert found["kd-tree's dispatchers need the least memory"] is False
    assert found["US: hybrid's dispatchers need most memory on Q2"] is False
    assert found["hybrid has the best throughput overall"] is False


def test_claims_without_rows_are_told_as_not_measured() -> None:
    found = verdicts([], [])
    assert [each.claim for each in found] == CLAIMS
    assert {(each.ours, each.holds) for each in found} == {("not measured", None)}


def test_one_country_alone_does_not_confirm_a_claim_about_both() -> None:
    only = {"US-Q3": GOOD_RATES["US-Q3"]}
    found = of(CLAIMS[2], rates(only, only, only), [])
    assert found.holds is None
    assert found.ours == "US-Q3: hybrid 1.30 times metric (1.30 by workers alone); UK-Q3: not measured"


def test_latency_is_judged_by_the_projected_clock() -> None:
    measured = [{**row, "clock": "measured"} for row in latencies(GOOD_LATENCY)]
    assert set(judged([], measured).values()) == {None}
