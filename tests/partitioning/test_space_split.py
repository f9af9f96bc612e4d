"""Boxes are cut where half of the weight lies, and lose nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.scan import cells_of as cells_of_region
from partitioning.samples import make_sample
from ps2stream.model.space import Grid, Region
from ps2stream.partitioning.kdt_tree import Box
from ps2stream.partitioning.sample import cells_of, digest_of
from ps2stream.partitioning.space_split import (
    Counts,
    Cut,
    Held,
    count_held,
    cut_box,
    median_cut,
    touching_box,
    weights_of,
)
from strategies import regions

pytestmark = pytest.mark.kernel

GRID = Grid.over((-20.0, 30.0, 40.0, 70.0), 4)
WHOLE = Box(0, 0, 16, 16)


@given(st.lists(regions, min_size=1, max_size=6), st.tuples(*[st.integers(0, 15)] * 4))
@settings(max_examples=60, deadline=None)
def test_regions_touch_a_box_when_they_share_a_cell(
    boxes: list[tuple[float, float, float, float]], corners: tuple[int, int, int, int]
) -> None:
    a, b, c, d = corners
    box = Box(min(a, c), min(b, d), max(a, c) + 1, max(b, d) + 1)
    inside = {r * 16 + q for r in range(box.row, box.row_stop) for q in range(box.column, box.column_stop)}
    cells = cells_of(GRID, np.empty(0), np.empty(0), np.array(boxes, np.float64).reshape(-1))
    found = touching_box(cells, np.arange(len(boxes)), box).tolist()
    assert found == [i for i, each in enumerate(boxes) if inside & set(cells_of_region(GRID, Region(*each)))]


def test_halves_share_publications_out_and_regions_on_the_line() -> None:
    digest = digest_of(make_sample(200, 80))
    cells = cells_of(GRID, digest.lon, digest.lat, digest.bounds)
    held = Held(WHOLE, np.arange(200), np.arange(80))
    low, high = cut_box(cells, held, Cut(0, 8))
    assert sorted([*low.publications, *high.publications]) == list(range(200))
    assert (cells.column[low.publications] < 8).all()
    assert (cells.column[high.publications] >= 8).all()
    assert set(low.subscriptions) | set(high.subscriptions) == set(range(80))
    assert set(low.subscriptions) & set(high.subscriptions)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_median_line_is_the_one_nearest_to_half_of_the_weight(axis: int) -> None:
    digest = digest_of(make_sample(300, 10))
    cells = cells_of(GRID, digest.lon, digest.lat, digest.bounds)
    weights = np.random.default_rng(1).random(300)
    cut = median_cut(cells, Held(WHOLE, np.arange(300), np.arange(10)), axis, weights)
    position = (cells.column, cells.row)[axis]
    off = [abs(weights[position < at].sum() - weights.sum() / 2) for at in range(1, 16)]
    assert cut == Cut(axis, 1 + int(np.argmin(off)))


def test_a_box_whose_publications_lie_in_one_line_of_cells_has_no_cut_there() -> None:
    digest = digest_of(make_sample(50, 10, spread=0.0))
    cells = cells_of(GRID, digest.lon, digest.lat, digest.bounds)
    held = Held(WHOLE, np.arange(50), np.arange(10))
    assert median_cut(cells, held, 0, np.ones(50)) is None
    assert median_cut(cells, Held(Box(0, 0, 1, 16), np.arange(50), np.arange(10)), 0, np.ones(50)) is None
    assert median_cut(cells, Held(WHOLE, np.empty(0, np.int64), np.arange(10)), 1, np.empty(0)) is None


def test_counts_are_those_of_the_held_rows_alone() -> None:
    digest = digest_of(make_sample(80, 60, seed=2))
    publications, subscriptions = np.arange(10, 70), np.arange(5, 40)
    reads, stands = digest.reads, digest.stands
    standing = [
        each
        for row in subscriptions
        for each in stands.lists[stands.offsets[row] : stands.offsets[row + 1]].tolist()
    ]
    meeting = []
    for row in publications:
        lists = reads.lists[reads.offsets[row] : reads.offsets[row + 1]].tolist()
        meeting.append(sum(1 + standing.count(each) for each in lists if each in standing))
    held = Held(WHOLE, publications, subscriptions)
    counts = count_held(digest, held)
    assert counts == Counts(int(np.count_nonzero(meeting)), 35, sum(meeting))
    weights = weights_of(digest, held, match=2.0, publication=5.0)
    assert weights.tolist() == [5.0 + 2.0 * n if n else 0.0 for n in meeting]
