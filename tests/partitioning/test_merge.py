"""Units go, heaviest first, to the worker they cost least, and loads are counted without doubles."""

from __future__ import annotations

import numpy as np
import pytest

from ps2stream.partitioning.growth import TreeRegion, Unit
from ps2stream.partitioning.kdt_tree import Box
from ps2stream.partitioning.load import Costs, Rates, rates_of
from ps2stream.partitioning.merge import merge_units
from ps2stream.partitioning.space_split import Counts, Held

pytestmark = pytest.mark.kernel

N_ROWS = 500
CANDIDATES = rates_of(Costs(2.0, 3.0, 5.0, 1.0), 1.0, 1.0)
PAPER = rates_of(Costs(0.01, 3.0, 5.0, 1.0, "paper"), 1.0, 1.0)


def unit_of(publications: list[int], subscriptions: list[int], n_looks: float, load: float) -> Unit:
    held = Held(Box(0, 0, 1, 1), np.array(publications), np.array(subscriptions))
    counts = Counts(len(publications), len(subscriptions), n_looks)
    return Unit(TreeRegion(held), None, held.publications, held.subscriptions, counts, load)


def random_units(n: int, seed: int) -> list[Unit]:
    rng = np.random.default_rng(seed)
    return [
        unit_of(
            rng.choice(N_ROWS, rng.integers(1, 40), replace=False).tolist(),
            rng.choice(N_ROWS, rng.integers(1, 20), replace=False).tolist(),
            int(rng.integers(0, 50)),
            float(rng.random() * 300),
        )
        for _ in range(n)
    ]


@pytest.mark.parametrize("rates", [CANDIDATES, PAPER], ids=["candidates", "paper"])
@pytest.mark.parametrize("n_workers", [1, 3, 70])
def test_loads_are_those_of_the_units_together(rates: Rates, n_workers: int) -> None:
    units = random_units(30, n_workers)
    merged = merge_units(units, n_workers, rates, (N_ROWS, N_ROWS))
    for worker in range(n_workers):
        mine = [unit for unit, owner in zip(units, merged.worker_of, strict=True) if owner == worker]
        n_pubs = len({row for unit in mine for row in unit.publications.tolist()})
        n_subs = len({row for unit in mine for row in unit.subscriptions.tolist()})
        n_looks = sum(unit.counts.n_looks for unit in mine)
        matched = n_pubs * n_subs if rates.is_paper else n_looks
        expected = rates.match * matched + rates.publication * n_pubs + rates.subscription * n_subs
        assert merged.loads[worker] == pytest.approx(expected)


def test_units_without_anything_in_common_are_spread_like_coins() -> None:
    units = [unit_of([i], [i], 0, load=9.0) for i in range(12)]
    merged = merge_units(units, 4, CANDIDATES, (N_ROWS, N_ROWS))
    assert np.bincount(merged.worker_of).tolist() == [3, 3, 3, 3]


def test_parts_of_one_region_come_together_where_there_is_room() -> None:
    shared = list(range(100))
    parts = [unit_of(shared, [i], 0, load=306.0) for i in range(2)]
    others = [unit_of([200 + 100 * i + k for k in range(100)], [10 + i], 0, load=306.0) for i in range(3)]
    merged = merge_units([*parts, *others], 3, CANDIDATES, (N_ROWS + 100, N_ROWS))
    assert merged.worker_of[0] == merged.worker_of[1]
    assert len(set(merged.worker_of.tolist())) == 3


def test_no_unit_is_piled_onto_the_heaviest_worker_for_what_it_shares() -> None:
    shared = list(range(100))
    parts = [unit_of(shared, [i], 100, load=506.0) for i in range(8)]
    merged = merge_units(parts, 8, CANDIDATES, (N_ROWS, N_ROWS))
    assert len(set(merged.worker_of.tolist())) >= 6
