"""Figures of plans come from trials, and are printed side by side."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from cli.plans import cell_plan, figures_of, sample_at, tree_plan
from ps2stream.cli.render.plan_figures import PlanFigures
from ps2stream.cli.render.plan_table import print_table
from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.plan import Estimate
from ps2stream.planning.trial import Trial

ROW = "cells 3,000.00 2.00 1.33 10 10 11 1.25 1.50 12.5% 0.25 -"
COSTS = Costs(match=1_000.0, publication=2_000.0, insert=0.0, delete=0.0)


def _trial(n_candidates: list[int], n_publications: list[int], n_discarded: int = 0) -> Trial:
    n = len(n_candidates)
    sample = sample_at([0.0] * 500, [0.0] * 500)
    return Trial(
        n_publications=np.array(n_publications),
        n_subscriptions=np.arange(n),
        n_lookups=np.zeros(n, np.int64),
        n_candidates=np.array(n_candidates),
        n_matches=np.zeros(n, np.int64),
        match_s=np.zeros(n),
        insert_s=np.zeros(n),
        delete_s=np.zeros(n),
        n_discarded=n_discarded,
        sample=sample._replace(bounds=np.zeros(4 * 10), n_live=10),
    )


def test_figures_are_what_the_trial_counted_charged_by_the_costs() -> None:
    figures = PlanFigures.of(cell_plan(2), _trial([3_000, 1_000], [500, 0], n_discarded=50), COSTS, 0.5)
    # 3,000 candidates of 1 us and 500 publications of 2 us: 4 ms for 500 publications, 8 ms for 1,000.
    assert figures.loads_ms == pytest.approx((8.0, 2.0))
    assert figures.load_ms == pytest.approx(10.0)
    assert figures.balance == pytest.approx(4.0)
    assert figures.peak == pytest.approx(1.6)
    assert figures.stored == (0, 1)
    assert figures.discarded == pytest.approx(0.1)
    assert figures.fan_out == pytest.approx(500 / 450)
    assert (figures.partitioner, figures.n_workers, figures.build_s) == ("cells", 2, 0.5)
    assert (figures.sigma, figures.keeps_sigma) == (None, None)


@pytest.mark.parametrize(("sigma", "kept"), [(1.5, True), (1.1, False)])
def test_figures_say_whether_the_partitioner_kept_its_sigma(sigma: float, kept: bool) -> None:
    plan = replace(cell_plan(2), estimate=Estimate((12.0, 10.0), COSTS, sigma))
    figures = PlanFigures.of(plan, _trial([1, 1], [1, 1]), COSTS, 0.0)
    assert (figures.sigma, figures.keeps_sigma) == (sigma, kept)


def test_json_has_null_for_what_is_infinite() -> None:
    figures = figures_of(cell_plan(2), 1.0, 0.0)
    assert math.isinf(figures.balance)
    assert json.loads(json.dumps(figures.as_dict(), allow_nan=False))["max_over_min"] is None


def test_no_load_at_all_is_in_balance() -> None:
    figures = figures_of(cell_plan(3), 0.0, 0.0, 0.0)
    assert (figures.balance, figures.peak) == (1.0, 1.0)


def test_the_table_has_a_row_for_each_plan(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        [
            figures_of(cell_plan(2), 1_000.0, 2_000.0),
            replace(figures_of(tree_plan()), sigma=1.3, keeps_sigma=True),
            replace(figures_of(tree_plan()), sigma=1.3, keeps_sigma=False),
        ]
    )
    header, first, second, third = capsys.readouterr().out.splitlines()
    assert header.split()[:4] == ["partitioner", "load", "max/min", "max/avg"]
    assert first.split() == ROW.split()
    assert second.endswith("1.3 kept")
    assert third.endswith("1.3 not kept")


def test_on_a_narrow_terminal_no_figure_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    print_table([figures_of(cell_plan(2), 1_000.0, 2_000.0)])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ROW.split() in lines
