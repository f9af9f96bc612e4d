"""The figure on baselines: claims are judged by workload, and what was not measured is not judged."""

from __future__ import annotations

from collections.abc import Mapping

from ps2stream_bench.figure import SCALES
from ps2stream_bench.figures.baselines import FIGURE, SPACE, TEXT
from ps2stream_bench.results import Row

SETTINGS = {"live": 10, "dispatchers": 4, "workers": 8, "repetitions": 2, "tuples": 100, "batch": 50}


def rows_of(workload: str, rates: Mapping[str, float]) -> list[Row]:
    return [
        {
            "case": workload,
            "workload": workload,
            "partitioner": name,
            "repetition": repetition,
            "projected_tuples_per_s": rate * (1 + repetition),
            "worker_tuples_per_s": rate,
            "registrar_or_merger_tuples_per_s": rate,
            "tuples_per_s": rate,
            "workers_busy_s": 100 / rate,
            "busy_max_over_mean": 1.25,
            "replication": 1.5,
            "limit": "worker",
            **SETTINGS,
        }
        for name, rate in rates.items()
        for repetition in range(2)
    ]


def judged(rows: list[Row]) -> dict[str, bool | None]:
    return {verdict.claim: verdict.holds for verdict in FIGURE.page(rows).verdicts}


def named(*rates: float) -> dict[str, float]:
    return dict(zip((*TEXT, *SPACE), rates, strict=True))


AS_THE_PAPER_SAYS = [
    row
    for country in ("US", "UK")
    for row in (
        *rows_of(f"{country}-Q1", named(76.0, 80.0, 90.0, 160.0, 190.0, 150.0)),
        *rows_of(f"{country}-Q2", named(220.0, 230.0, 267.0, 170.0, 200.0, 181.0)),
    )
]
THE_OTHER_WAY_ROUND = [
    row
    for country in ("US", "UK")
    for row in (
        *rows_of(f"{country}-Q1", named(160.0, 190.0, 100.0, 90.0, 80.0, 85.0)),
        *rows_of(f"{country}-Q2", named(170.0, 200.0, 160.0, 260.0, 230.0, 240.0)),
    )
]
CLAIMS = [
    "US-Q1: space partitioning is faster than text partitioning",
    "US-Q2: text partitioning is faster than space partitioning",
    "UK-Q1: space partitioning is faster than text partitioning",
    "UK-Q2: text partitioning is faster than space partitioning",
    "US-Q1: grid is faster than frequency",
    "US-Q2: metric is faster than r-tree",
    "metric is the best text partitioner overall",
    "kd-tree is the best space partitioner overall",
]


def test_rates_like_the_papers_confirm_all_its_claims() -> None:
    assert judged(AS_THE_PAPER_SAYS) == dict.fromkeys(CLAIMS, True)


def test_rates_the_other_way_round_refute_all_claims() -> None:
    assert judged(THE_OTHER_WAY_ROUND) == dict.fromkeys(CLAIMS, False)


def test_one_slow_space_partitioner_is_enough_to_refute_that_space_is_faster() -> None:
    rows = [row for row in AS_THE_PAPER_SAYS if row["partitioner"] != "r-tree"]
    slow = rows_of("US-Q1", {"r-tree": 85.0})
    assert judged([*rows, *slow])[CLAIMS[0]] is False


def test_who_is_best_overall_is_a_matter_of_ratios_on_every_workload_and_wins_are_told() -> None:
    few = [
        *rows_of("US-Q1", {"frequency": 100.0, "hypergraph": 100.0, "metric": 105.0}),
        *rows_of("UK-Q1", {"frequency": 100.0, "hypergraph": 100.0, "metric": 105.0}),
        *rows_of("UK-Q2", {"frequency": 100.0, "hypergraph": 100.0, "metric": 50.0}),
    ]
    (best,) = (each for each in FIGURE.page(few).verdicts if each.claim.startswith("metric is the best"))
    assert best.holds is False
    assert "0.82 times frequency" in best.ours
    assert "fastest on 2 of 3 workloads (US-Q1, UK-Q1)" in best.ours
    assert "UK-Q2: metric 0.50 times frequency" in best.ours


def test_what_was_not_measured_is_neither_held_nor_refuted() -> None:
    some = [row for row in AS_THE_PAPER_SAYS if row["partitioner"] in ("grid", "frequency")]
    found = judged([row for row in some if row["workload"] == "US-Q1"])
    assert found.pop("US-Q1: grid is faster than frequency") is True
    assert set(found) == set(CLAIMS) - {"US-Q1: grid is faster than frequency"}
    assert set(found.values()) == {None}


def test_the_explanation_tells_work_and_limits_of_the_rows() -> None:
    differs = FIGURE.page(AS_THE_PAPER_SAYS).differs
    assert "2.00 on US-Q1, 2.00 on UK-Q1" in differs
    assert "in 0 of 24 lines the busiest dispatcher" in differs


def test_the_papers_figures_are_told() -> None:
    stated = " ".join(verdict.paper for verdict in FIGURE.page(AS_THE_PAPER_SAYS).verdicts)
    for figure in ("160,659", "76,921", "267,415", "181,542", "2.09 times", "1.47 times"):
        assert figure in stated


def test_every_scale_has_distinct_cases() -> None:
    for scale in SCALES:
        cases = FIGURE.cases(scale)
        assert len({str(case) for case in cases}) == len(cases) > 0
    assert {(case["country"], case["kind"]) for case in FIGURE.cases("small")} == {
        (country, kind) for country in ("us", "uk") for kind in ("q1", "q2")
    }
