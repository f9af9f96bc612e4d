"""The figure on migration: selectors see the same cells, places get busy, claims are judged by the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow.compute as pc
import pytest

from ps2stream.balance.adjustments import Adjustment, StepRecord
from ps2stream.balance.selection import SELECTORS, MovableCells
from ps2stream_bench.engines import stream_of
from ps2stream_bench.figure import SCALES
from ps2stream_bench.figures.migration import FIGURE, claims
from ps2stream_bench.figures.migration.claims import verdicts
from ps2stream_bench.figures.migration.measurement import RUSH, choices, record_of, with_rush
from ps2stream_bench.figures.migration.summary import (
    PACE,
    mean_ratio,
    migration_summary,
    selection_summary,
    waiting,
)
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import busy_by_interval, corpus_for, region_of

SIZES = (1_000_000, 5_000_000, 10_000_000)
FAST = {"dp": 0.05, "gr": 0.0002, "si": 0.0001, "ra": 0.00005}
CHEAP = {"dp": 100, "gr": 101, "si": 160, "ra": 170}
SHORT = {"dp": 0.22, "gr": 0.2, "si": 0.3, "ra": 0.4}
#: In proportion more than a worker has, and bounded.
GROWING = dict(zip(SIZES, (10**9, 5 * 10**9, 10**10), strict=True))
BOUNDED = dict.fromkeys(SIZES, 10**6)
N_CLAIMS = 16


def chosen(seconds: Mapping[str, float], peaks: Mapping[int, int]) -> list[Row]:
    return [
        {
            "part": "selection",
            "case": f"selection {size}",
            "subscriptions": size,
            "selector": name,
            "repetition": repetition,
            "n_cells": 100,
            "n_bytes": CHEAP[name],
            "select_s": seconds[name],
            "peak_bytes": peaks[size],
        }
        for size in SIZES
        for name in SELECTORS
        for repetition in range(4)
    ]


def moved(n_bytes: Mapping[str, int], seconds: Mapping[str, float], *, grows: bool = True) -> list[Row]:
    """Three migrations for each selector and size, in one interval of two seconds at the pace."""
    rows: list[Row] = []
    for index, size in enumerate(SIZES):
        for name in SELECTORS:
            own = {"part": "migration", "case": str(size), "subscriptions": size, "selector": name}
            interval = {"interval": 0, "n_events": 2 * PACE, "n_publications": PACE, "share_over_100_ms": 0.2}
            rows.append({**own, "row": "interval", **interval})
            factor = 1 + index if grows else 1
            one = {
                "row": "migration",
                "moved_bytes": factor * n_bytes[name],
                "selected_bytes": factor * n_bytes[name],
                "selection_s": 0.01,
                "migration_s": factor * seconds[name],
                "pause_s": seconds[name],
            }
            rows += [{**own, **one}] * 3
    return rows


def holds(rows: list[Row]) -> dict[str, bool | None]:
    return {verdict.claim: verdict.holds for verdict in verdicts(rows)}


def told(claim: claims.Claim, rows: list[Row]) -> str:
    (found,) = (verdict.ours for verdict in verdicts(rows) if verdict.claim == claim.text)
    return found


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_a_case_of_choosing_and_one_of_moving_at_three_sizes(scale: str) -> None:
    cases = FIGURE.cases(scale)  # type: ignore[arg-type]
    assert len({str(case) for case in cases}) == len(cases) == 6
    assert Counter(case["part"] for case in cases) == {"selection": 3, "migration": 3}
    assert len({case["subscriptions"] for case in cases}) == 3


def test_selectors_choose_from_the_same_cells_for_the_same_target() -> None:
    rng = np.random.default_rng(3)
    cells = MovableCells(rng.exponential(size=80), rng.integers(100, 9_000, 80))
    rows = list(choices(cells, 0.1, 5))
    assert {row["selector"] for row in rows} == set(SELECTORS)
    assert all(row["load"] >= row["target"] > 0 for row in rows)
    assert all(row["target"] == pytest.approx(0.1 * cells.loads.sum()) for row in rows)
    (dp,) = (row for row in rows if row["selector"] == "dp")
    assert all(dp["n_bytes"] <= row["n_bytes"] for row in rows)
    assert all(row["select_s"] > 0 and row["peak_bytes"] > 0 for row in rows)


def test_a_rush_makes_publications_of_busy_regions_come_more_often_and_leaves_the_rest_alone() -> None:
    corpus = corpus_for("us", 2_000, 1)
    plain = stream_of(corpus, "q1", 300, 8_000, 1)
    stream = with_rush(plain, corpus, 2, 1)
    is_publish = pc.equal(plain.events["op"], "publish")
    kept = ("seq", "op", "id", "expression", "min_lon")
    assert all(stream.events[name].equals(plain.events[name]) for name in kept)
    assert stream.events["lon"].null_count == plain.events["lon"].null_count
    half = 4_000
    before, after = (each.events.filter(is_publish) for each in (plain, stream))
    assert after.slice(0, half).equals(before.slice(0, half))
    is_busy = busy_by_interval(1, 2)[1]

    def share(events: object) -> float:
        own = events.slice(half)  # type: ignore[attr-defined]
        return float(is_busy[region_of(corpus, own["lon"].to_numpy(), own["lat"].to_numpy())].mean())

    usual = share(before)
    assert 0.0 < usual < 0.5
    assert share(after) == pytest.approx(RUSH * usual / (1 + (RUSH - 1) * usual), abs=0.05)


def test_only_what_a_selector_chose_counts_as_selected() -> None:
    steps = (
        StepRecord("split", 0, 1, 1, (4,), 1.0, 30),
        StepRecord("move", 0, 1, 2, (5, 6), 2.0, 400),
    )
    made = Adjustment("local", 3, "", "", 1, 2, (1.0, 2.0), steps=steps, n_bytes=420, migration_s=0.2)
    row = record_of(made)
    assert (row["selected_bytes"], row["moved_bytes"], row["migration_s"]) == (400, 420, 0.2)


def test_tuples_wait_that_arrive_early_enough_in_a_pause() -> None:
    pauses: list[Row] = [{"pause_s": 0.05}, {"pause_s": 0.6}, {"pause_s": 1.5}]
    intervals: list[Row] = [{"n_events": 5 * PACE}, {"n_events": 5 * PACE}]
    assert waiting(pauses, intervals, 0.1) == pytest.approx(0.19)
    assert waiting(pauses, intervals, 1.0) == pytest.approx(0.05)
    assert waiting([], intervals, 0.1) == 0.0
    assert waiting([{"pause_s": 99.0}], intervals, 0.1) == 1.0


def test_all_claims_hold_on_rows_like_the_paper_has_them() -> None:
    found = holds(chosen(FAST, GROWING) + moved(CHEAP, SHORT))
    assert len(found) == N_CLAIMS
    wrong = {claim for claim, is_true in found.items() if not is_true}
    assert not wrong


def test_no_claim_holds_on_rows_that_say_the_opposite() -> None:
    slow = {"dp": 0.02, "gr": 0.02, "si": 0.02, "ra": 0.03}
    rows = chosen(slow, BOUNDED)
    for row in rows:
        if row["subscriptions"] == SIZES[-1]:
            row["select_s"] *= 2
    dear = {"dp": 200, "gr": 200, "si": 150, "ra": 190}
    long = {"dp": 0.8, "gr": 0.9, "si": 0.5, "ra": 0.4}
    found = holds(rows + moved(dear, long, grows=False))
    assert len(found) == N_CLAIMS
    assert set(found.values()) == {False}


@pytest.mark.parametrize(("dp_s", "is_slightly"), [(0.19, False), (0.2, True), (0.24, True), (0.26, False)])
def test_slightly_longer_has_two_ends(dp_s: float, is_slightly: bool) -> None:
    found = holds(moved(CHEAP, {**SHORT, "dp": dp_s}))
    assert found[claims.LEAST_TIME.text] is is_slightly


@pytest.mark.parametrize(("gr", "is_saved"), [(60, True), (100, True), (111, True), (113, False)])
def test_a_saving_of_30_percent_is_needed_and_one_beyond_40_is_told(gr: int, is_saved: bool) -> None:
    rows = moved({**CHEAP, "gr": gr, "ra": 160}, SHORT)
    assert holds(rows)[claims.SAVING.text] is is_saved
    assert f"{1 - gr / 160:.0%} less than SI ({gr / 160:.2f} [" in told(claims.SAVING, rows)
    assert ("more than the paper's 40 %" in told(claims.SAVING, rows)) == (gr == 60)
    assert "5M subscriptions; migrations: DP 3, GR 3, SI 3, RA 3" in told(claims.SAVING, rows)


def test_gr_must_be_best_at_every_size() -> None:
    rows = moved(CHEAP, SHORT)
    for row in rows:
        if row["subscriptions"] == SIZES[0] and row["selector"] == "ra" and row["row"] == "migration":
            row["moved_bytes"] = 90
    found = holds(rows)
    assert found[claims.GR_BYTES.text] is False
    assert found[claims.GR_TIME.text] is True
    assert "1M: SI 0.63" in told(claims.GR_BYTES, rows)


def test_delays_hang_on_the_pace_and_say_so() -> None:
    delays = (claims.LEFT_ALONE, claims.SECOND, claims.BETWEEN, claims.MORE_DELAYED)
    assert all(f"if {PACE:,} tuples came a second" in told(each, moved(CHEAP, SHORT)) for each in delays)


def test_dp_that_ran_with_few_subscriptions_is_judged_by_the_worst_that_many_could_take() -> None:
    few = [row for row in chosen(FAST, BOUNDED) if row["subscriptions"] == SIZES[0]]
    assert holds(few)[claims.DP_MEMORY.text] is False
    assert told(claims.DP_MEMORY, few).endswith("in proportion it would be 10 MB with 10M")
    assert "proportion" not in told(claims.DP_MEMORY, chosen(FAST, BOUNDED))
    assert holds(few)[claims.TIME_BY_SIZE.text] is None


def test_a_ratio_of_averages_has_an_interval_where_they_are_of_several() -> None:
    few: list[Row] = [{"s": 1.0}, {"s": 2.0}, {"s": 6.0}]
    found = mean_ratio(few, [{"s": 2.0}, {"s": 1.0}], "s")
    assert found.value == pytest.approx(2.0)
    assert 0.5 <= found.low < 2.0 < found.high <= 6.0
    assert found == mean_ratio(few, [{"s": 2.0}, {"s": 1.0}], "s")
    assert f"{mean_ratio(few, few[:1], 's'):.1f}" == "3.0"
    assert mean_ratio(few, [{"s": 0.0}], "s").value == np.inf


def test_what_was_not_measured_is_left_open() -> None:
    few = [row for row in moved(CHEAP, SHORT) if row["selector"] in ("gr", "si")]
    found = holds(few)
    assert len(found) == N_CLAIMS
    assert found.pop(claims.GROWING.text) is True
    assert set(found.values()) == {None}
    assert list(holds([]).values()) == [None] * N_CLAIMS
    page = FIGURE.page(few)
    assert len(page.tables) == 1
    assert [drawing.name for drawing in page.drawings] == ["migration", "delays"]


def test_summaries_compare_choices_with_those_of_dp_and_average_migrations() -> None:
    (dp, gr, *_) = selection_summary(chosen(FAST, dict.fromkeys(SIZES, 10**6)))
    assert (dp["selector"], gr["selector"]) == ("DP", "GR")
    assert gr["cost_ratio"].median == pytest.approx(1.01)
    assert gr["within_5_percent"] == 1.0
    rows = moved(CHEAP, SHORT)
    (line, *_) = migration_summary(
        [row for row in rows if row["row"] == "migration"], [row for row in rows if row["row"] == "interval"]
    )
    assert (line["selector"], line["n"], line["moved_kb"]) == ("DP", 3, pytest.approx(0.1))
    assert line["share_below"] == pytest.approx(1 - 3 * 0.12 / 2)
    assert line["share_held_up"] == pytest.approx(0.2)
