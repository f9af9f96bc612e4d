"""What the paper claims of hybrid partitioning is judged by the rows."""

from __future__ import annotations

from collections.abc import Mapping

from ps2stream_bench.figures.hybrid_claims import verdicts
from ps2stream_bench.results import Row

Figures = Mapping[str, tuple[float, float, float]]
NAMES = ("hybrid", "metric", "kd-tree")


def about(workload: str, name: str) -> Row:
    country, kind = workload.lower().split("-")
    return {
        "case": workload,
        "workload": workload,
        "country": country,
        "kind": kind,
        "live": 1000,
        "partitioner": name,
        "repetition": 0,
    }


def rates(tuples_per_s: Figures, dispatcher_mb: Figures, worker_mb: Figures) -> list[Row]:
    return [
        {
            **about(workload, name),
            "projected_tuples_per_s": tuples_per_s[workload][place],
            "worker_tuples_per_s": tuples_per_s[workload][place],
            "dispatcher_mb": dispatcher_mb[workload][place],
            "worker_mb": worker_mb[workload][place],
        }
        for workload in tuples_per_s
        for place, name in enumerate(NAMES)
    ]


def latencies(mean_ms: Figures) -> list[Row]:
    return [
        {**about(workload, name), "clock": "projected", "latency_mean_ms": mean_ms[workload][place]}
        for workload in mean_ms
        for place, name in enumerate(NAMES)
    ]


# Figures of hybrid, metric and kd-tree.
GOOD_RATES = {"US-Q1": (200.0, 100.0, 190.0), "US-Q2": (270.0, 265.0, 200.0), "US-Q3": (260.0, 200.0, 200.0)}
GOOD_DISPATCHERS = {
    "US-Q1": (400.0, 500.0, 300.0),
    "US-Q2": (900.0, 600.0, 350.0),
    "US-Q3": (700.0, 600.0, 300.0),
}
GOOD_WORKERS = {
    "US-Q1": (500.0, 600.0, 550.0),
    "US-Q2": (500.0, 600.0, 700.0),
    "US-Q3": (600.0, 590.0, 610.0),
}
GOOD_LATENCY = {"UK-Q1": (15.0, 407.0, 16.0), "US-Q2": (15.0, 15.0, 25.0)}

BAD_RATES = {"US-Q1": (180.0, 170.0, 190.0), "US-Q2": (190.0, 180.0, 200.0), "US-Q3": (210.0, 200.0, 205.0)}
BAD_DISPATCHERS = {
    "US-Q1": (1400.0, 500.0, 600.0),
    "US-Q2": (900.0, 600.0, 650.0),
    "US-Q3": (700.0, 600.0, 601.0),
}
BAD_WORKERS = {"US-Q1": (500.0, 500.0, 550.0), "US-Q2": (500.0, 500.0, 700.0), "US-Q3": (580.0, 590.0, 610.0)}
BAD_LATENCY = {"UK-Q1": (15.0, 16.0, 16.0), "US-Q2": (15.0, 13.0, 16.0)}

CLAIMS = [
    "hybrid has the best throughput, whatever the distribution",
    "Q3: hybrid is 30 % faster than metric",
    "Q3: hybrid is 30 % faster than kd-tree",
    "US-Q1: hybrid is slightly faster than kd-tree",
    "US-Q1: hybrid and kd-tree are much faster than metric (1.2 times or more)",
    "Q2: hybrid and metric are faster than kd-tree",
    "hybrid's latency is the smallest, or within 10 % of it, everywhere",
    "Q2: kd-tree's latency is noticeably larger than hybrid's (1.2 times or more)",
    "UK-Q1: metric's latency is far above hybrid's (2 times or more)",
    "a dispatcher needs less than 1000 MB",
    "kd-tree's dispatchers need the least memory",
    "US: hybrid's dispatchers need most memory on Q2",
    "hybrid's workers need the least memory in most cases",
]


def judged(rate_rows: list[Row], latency_rows: list[Row]) -> dict[str, bool]:
    return {verdict.claim: verdict.holds for verdict in verdicts(rate_rows, latency_rows)}


def test_figures_like_the_papers_confirm_all_its_claims() -> None:
    found = judged(rates(GOOD_RATES, GOOD_DISPATCHERS, GOOD_WORKERS), latencies(GOOD_LATENCY))
    assert found == dict.fromkeys(CLAIMS, True)


def test_other_figures_refute_all_claims() -> None:
    found = judged(rates(BAD_RATES, BAD_DISPATCHERS, BAD_WORKERS), latencies(BAD_LATENCY))
    assert found == dict.fromkeys(CLAIMS, False)


def test_who_is_equal_to_the_best_is_not_the_best() -> None:
    alike = {"US-Q1": (500.0, 500.0, 500.0)}
    found = judged(rates(alike, alike, alike), [])
    assert found["hybrid's workers need the least memory in most cases"] is False
    assert found["hybrid has the best throughput, whatever the distribution"] is False


def test_claims_without_rows_are_left_out() -> None:
    assert judged([], []) == {}
    only = {"US-Q3": GOOD_RATES["US-Q3"]}
    found = judged(rates(only, only, only), [])
    assert "Q3: hybrid is 30 % faster than metric" in found
    assert not any(claim.startswith(("Q2", "US", "UK", "hybrid's latency")) for claim in found)


def test_latency_is_judged_by_the_projected_clock() -> None:
    measured = [{**row, "clock": "measured"} for row in latencies(GOOD_LATENCY)]
    assert judged([], measured) == {}
