"""A window of load reports adds up what workers said of their newest batches."""

from __future__ import annotations

import random
from collections import Counter
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.balance.loads import WORK_COSTS, Window, loads_of
from ps2stream.model.schemas import empty
from ps2stream.partitioning.load import LOAD_FUNCTIONS, LoadFunction
from ps2stream.roles.packets import CELL_LOADS

NOTHING = empty(CELL_LOADS)
Row = dict[str, int]


def _row(cell: int, publications: int = 1, **others: int) -> Row:
    fields = dict.fromkeys(CELL_LOADS.names, 0) | {"cell": cell, "publications": publications}
    return fields | others


def _report(*rows: Row) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), CELL_LOADS)


def _window(n_workers: int = 2, size: int = 100, load: LoadFunction = "candidates") -> Window:
    return Window(n_workers, size, load, NOTHING)


def _add(window: Window, n_publications: int, *loads: int) -> None:
    """Add a batch in which every worker had some publications in one cell."""
    reports = {worker: _report(_row(worker, load)) for worker, load in enumerate(loads) if load}
    window.add(n_publications, reports, {worker: float(load) for worker, load in enumerate(loads)})


def test_the_load_of_a_cell_is_what_its_looks_cost_or_all_pairs() -> None:
    report = _report(
        _row(3, 10, lookups=20, candidates=30, matches=4, subscriptions=50), _row(9, 1, subscriptions=7)
    )
    costs = WORK_COSTS
    expected = 10 * costs.publication + 20 * costs.lookup + 30 * costs.candidate + 4 * costs.match
    assert loads_of(report, "candidates").tolist() == [expected, costs.publication]
    assert loads_of(report, "paper").tolist() == [500.0, 7.0]
    for load in LOAD_FUNCTIONS:
        assert loads_of(NOTHING, load).tolist() == []
        assert loads_of(report, load).dtype == np.float64


def test_pairs_of_millions_do_not_overflow() -> None:
    report = _report(_row(0, 2_000_000_000, subscriptions=2_000_000_000))
    assert loads_of(report, "paper").tolist() == [4e18]


def test_a_window_is_full_once_so_many_publications_have_passed_and_keeps_no_more_batches_than_needed() -> (
    None
):
    window = _window(size=100)
    assert not window.is_full
    for n, kept in ((40, 40), (40, 80), (40, 120), (10, 130), (30, 120), (500, 500), (10, 510), (95, 105)):
        _add(window, n, n)
        assert window.n_publications == kept, "the oldest batch goes when the others are enough"
        assert window.is_full == (kept >= 100)
    window.clear()
    assert (window.n_publications, window.is_full) == (0, False)
    assert window.totals().tolist() == [0.0, 0.0]
    assert len(window.table(0).cells) == 0


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9), st.integers(0, 9)), max_size=15),
    st.integers(1, 100),
)
@settings(max_examples=60, deadline=None)
def test_totals_and_halves_add_up_the_newest_batches(batches: list[tuple[int, int, int]], size: int) -> None:
    window = _window(size=size, load="candidates")
    for n_publications, *loads in batches:
        _add(window, n_publications, *loads)
    kept = _newest(batches, size)
    totals = [WORK_COSTS.publication * sum(batch[1 + worker] for batch in kept) for worker in range(2)]
    assert window.totals().tolist() == totals
    assert window.busy_s().tolist() == [sum(batch[1 + worker] for batch in kept) for worker in range(2)]
    assert window.n_publications == sum(batch[0] for batch in kept)
    older, newer = window.halves()
    if (older != newer).any():
        assert (older + newer).tolist() == totals, "no batch is in both, and none is left out"
    begins = [0, *accumulate(batch[0] for batch in kept)][:-1]
    first = [batch for batch, n in zip(kept, begins, strict=True) if 2 * n < window.n_publications]
    assert older.tolist() == [
        WORK_COSTS.publication * sum(b[1 + worker] for b in first) for worker in range(2)
    ]


def _newest(batches: list[tuple[int, int, int]], size: int) -> list[tuple[int, int, int]]:
    """Return the fewest of the newest batches that have enough publications, or all."""
    kept: list[tuple[int, int, int]] = []
    for batch in reversed(batches):
        if sum(each[0] for each in kept) >= size:
            break
        kept.insert(0, batch)
    return kept


def test_one_batch_is_both_halves() -> None:
    window = _window(size=10)
    _add(window, 50, 3, 1)
    older, newer = window.halves()
    assert older.tolist() == newer.tolist() == window.totals().tolist()


def test_a_peak_that_passes_is_in_one_half_only() -> None:
    window = _window(size=100)
    for loads in ((9, 1), (9, 1), (1, 1), (1, 1)):
        _add(window, 25, *loads)
    older, newer = window.halves()
    assert older[0] == 9 * older[1]
    assert newer[0] == newer[1]


def test_a_worker_that_says_nothing_had_nothing_to_do() -> None:
    window = _window(n_workers=3)
    window.add(10, {1: _report(_row(5, 10))}, {1: 0.5})
    assert window.totals().tolist() == [0.0, 10 * WORK_COSTS.publication, 0.0]
    assert window.busy_s().tolist() == [0.0, 0.5, 0.0]
    assert len(window.table(0).cells) == 0
    assert window.table(1).cells.tolist() == [5]


def test_a_table_adds_up_work_averages_subscriptions_and_knows_the_newest_bytes() -> None:
    window = _window(size=1000)
    window.add(
        10,
        {
            0: _report(
                _row(7, 2, lookups=1, candidates=5, matches=1, subscriptions=10, bytes=100),
                _row(9, 1, subscriptions=3, bytes=30),
            )
        },
        {},
    )
    window.add(10, {0: _report(_row(2, 4, subscriptions=1, bytes=8))}, {})
    window.add(
        10,
        {0: _report(_row(7, 3, lookups=2, candidates=1, matches=1, subscriptions=20, bytes=60))},
        {},
    )
    table = window.table(0)
    assert table.cells.tolist() == [2, 7, 9]
    assert table.publications.tolist() == [4, 5, 1]
    assert table.candidates.tolist() == [0, 6, 0]
    assert table.matches.tolist() == [0, 2, 0]
    assert table.subscriptions.tolist() == [1.0, 15.0, 3.0], "over the batches in which it had publications"
    assert table.sizes.tolist() == [8, 60, 30]
    costs = WORK_COSTS
    busiest = 5 * costs.publication + 3 * costs.lookup + 6 * costs.candidate + 2 * costs.match
    assert table.loads.tolist() == [4 * costs.publication, busiest, costs.publication]
    assert table.sizes.dtype == table.cells.dtype == np.int64


@pytest.mark.parametrize("load", LOAD_FUNCTIONS)
def test_the_tables_of_all_workers_add_up_to_their_totals(load: LoadFunction) -> None:
    rng = random.Random(4)
    window = _window(n_workers=3, size=500, load=load)
    expected: Counter[tuple[int, int]] = Counter()
    batches: list[dict[int, list[Row]]] = []
    for _ in range(12):
        batch = {
            worker: [_random_row(rng, cell) for cell in sorted(rng.sample(range(40), 8))]
            for worker in range(3)
            if rng.random() < 0.8
        }
        batches.append(batch)
        window.add(100, {worker: _report(*rows) for worker, rows in batch.items()}, {})
    for batch in batches[-5:]:
        for worker, rows in batch.items():
            for row in rows:
                expected[worker, row["cell"]] += row["publications"]
    for worker in range(3):
        table = window.table(worker)
        found = dict(zip(table.cells.tolist(), table.publications.tolist(), strict=True))
        assert found == {cell: n for (owner, cell), n in expected.items() if owner == worker}
        assert table.loads.sum() == pytest.approx(window.totals()[worker])


def _random_row(rng: random.Random, cell: int) -> Row:
    fields: dict[str, Any] = {name: rng.randint(0, 50) for name in CELL_LOADS.names}
    return fields | {"cell": cell, "publications": rng.randint(1, 20)}


def test_batches_without_publications_leave_a_window_as_it_is() -> None:
    window = Window(2, 100, "candidates", empty(CELL_LOADS))
    for _ in range(50):
        window.add(0, {}, {0: 1.0})
    assert window.busy_s().tolist() == [0.0, 0.0]
    assert not window.is_full
