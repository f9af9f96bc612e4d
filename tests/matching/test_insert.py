"""The small kernels that postings are made of."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.matching.insert import bloom_of, quantise
from ps2stream.matching.probe import holds
from ps2stream.model.space import WORLD, Grid, column_of
from strategies import longitudes

pytestmark = pytest.mark.kernel

terms = st.integers(0, (1 << 64) - 1)


@given(longitudes, longitudes, st.integers(1, 12), st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_of_two_places_in_one_cell_the_western_one_is_never_quantised_east_of_the_other(
    one: float, other: float, bits: int, level: int
) -> None:
    grid = Grid.over(WORLD, bits)
    level = min(level, bits)
    west, east = sorted((one, other))
    if column_of(grid, west) >> level != column_of(grid, east) >> level:
        east = west
    cell = column_of(grid, west) >> level
    at = [quantise((lon - grid.min_lon) * grid.columns_per_degree, level, cell) for lon in (west, east)]
    assert 0 <= at[0] <= at[1] <= 255


@given(st.lists(terms, max_size=20), st.lists(terms, max_size=20))
@settings(max_examples=100, deadline=None)
def test_the_bloom_filter_of_a_text_covers_that_of_every_clause_within_it(
    some: list[int], others: list[int]
) -> None:
    part, whole = np.array(some, np.uint64), np.array(some + others, np.uint64)
    missing = ~np.uint64(bloom_of(whole, 0, len(whole)))
    assert np.uint64(bloom_of(part, 0, len(part))) & missing == 0


@given(st.sets(terms, max_size=20), st.data())
@settings(max_examples=100, deadline=None)
def test_holds_looks_at_its_own_stretch_only(inside: set[int], data: st.DataObject) -> None:
    before, after = data.draw(st.lists(terms, max_size=3)), data.draw(st.lists(terms, max_size=3))
    row = np.array([*before, *sorted(inside), *after], np.uint64)
    asked = data.draw(st.one_of(terms, st.sampled_from(row.tolist()) if len(row) else terms))
    start = len(before)
    assert holds(row, start, start + len(inside), np.uint64(asked)) == (asked in inside)
