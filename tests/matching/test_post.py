"""Where many wait for one word in one area, their list is divided, and nobody loses by it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.indexes import COUNTERS, built, end, probe
from matching.scan import TERMS, Published, Scan, Stored, columns_of, random_clauses, random_publications
from ps2stream.matching.contract import IndexSettings
from ps2stream.matching.index import GI2
from ps2stream.matching.layout import FINER_LEVELS, N_SPLITS
from ps2stream.matching.post import quarters_of
from ps2stream.model.space import WORLD, Grid, Region, cell_seed, column_of, row_of
from sizes import examples, sized

pytestmark = pytest.mark.kernel

GRID = Grid.over(WORLD, 4)
TERM = TERMS[0]


def _n_splits(index: GI2) -> int:
    return int(index._arrays.head[N_SPLITS])


def _town(rng: random.Random, n: int, first_seq: int = 1) -> list[Stored]:
    """Draw subscriptions that crowd in a few degrees, from points to regions as large as their cell."""
    stored = []
    for i in range(n):
        west, south = 1.0 + 4.0 * rng.random(), 1.0 + 4.0 * rng.random()
        size = rng.choice((0.0, 0.05, 0.5, 5.0, 20.0))
        clauses = ((TERM,),) if rng.random() < 0.7 else random_clauses(rng)
        stored.append(Stored(first_seq + 2 * i, Region(west, south, west + size, south + size), clauses))
    return stored


def _visitors(rng: random.Random, n: int, seq: int) -> list[Published]:
    points = [(1.0 + 5.0 * rng.random(), 1.0 + 5.0 * rng.random()) for _ in range(n)]
    terms = tuple(sorted(TERMS))
    return [Published(seq, lon, lat, terms, frozenset(terms)) for lon, lat in points]


@given(st.integers(0, 1 << 32), st.sampled_from([2, 8, 32]))
@settings(max_examples=examples(20), deadline=None)
def test_a_crowded_place_finds_what_a_scan_finds(seed: int, split_at: int) -> None:
    rng = random.Random(seed)
    scan = Scan()
    scan.insert(_town(rng, 120))
    index = built(IndexSettings(GRID, COUNTERS, split_at=split_at), list(scan.stored.values()))
    published = _visitors(rng, 30, 1000) + random_publications(rng, 10, range(300), scan.live())
    assert probe(index, published) == scan.matches(published)
    assert _n_splits(index) > 0
    ends = {each.seq_from: 500 for each in rng.sample(scan.live(), 60)}
    end(index, ends)
    scan.end(ends)
    later = _town(rng, 40, 1001)
    index.insert(columns_of(later))
    scan.insert(later)
    published = _visitors(rng, 30, 2000)
    assert probe(index, published, horizon=700) == scan.matches(published)
    index = index.compacted(700)
    assert probe(index, published, horizon=700) == scan.matches(published)


@pytest.mark.usefixtures("tiny_start")
@pytest.mark.parametrize("seed", range(4))
def test_room_that_runs_out_while_a_list_is_divided_loses_nothing(seed: int) -> None:
    rng = random.Random(seed)
    scan = Scan()
    index = GI2.create(IndexSettings(GRID, COUNTERS, split_at=2))
    for start in range(0, 400, 40):
        stored = _town(rng, 20, start + 1)
        index.insert(columns_of(stored))
        scan.insert(stored)
        published = _visitors(rng, 10, 1000)
        assert probe(index, published) == scan.matches(published)


def test_dividing_leaves_fewer_candidates() -> None:
    rng = random.Random(1)
    points = [(1.0 + 8.0 * rng.random(), 1.0 + 8.0 * rng.random()) for _ in range(400)]
    stored = [Stored(i + 1, Region(x, y, x + 0.2, y + 0.2), ((TERM,),)) for i, (x, y) in enumerate(points)]
    published = _visitors(rng, 20, 1000)
    whole, divided = (built(IndexSettings(GRID, COUNTERS, split_at=n), stored) for n in (1000, 16))
    assert probe(whole, published) == probe(divided, published)
    assert _n_splits(whole) == 0
    assert divided.counts().n_candidates < whole.counts().n_candidates / 4
    assert divided.counts().n_postings < 2 * whole.counts().n_postings


def test_a_list_of_regions_as_large_as_its_cell_is_left_whole() -> None:
    stored = [Stored(seq, Region(0.0, 0.0, 22.0, 11.0), ((TERM,),)) for seq in range(1, 100)]
    index = built(IndexSettings(GRID, COUNTERS, split_at=8), stored)
    assert _n_splits(index) == 0
    assert index.counts().n_postings == 99


@pytest.mark.parametrize(
    ("steps", "quarters"),
    [
        ((0, 63, 0, 63), 0b1111),
        ((0, 31, 0, 31), 0b0001),
        ((32, 63, 5, 9), 0b0010),
        ((31, 32, 40, 41), 0b1100),
        ((40, 41, 31, 32), 0b1010),
        ((32, 32, 32, 32), 0b1000),
    ],
)
def test_a_region_touches_the_quarters_that_its_bounds_lie_in(
    steps: tuple[int, int, int, int], quarters: int
) -> None:
    assert quarters_of(steps) == quarters


def _seed_at(lon: float, lat: float, level: int) -> int:
    fine = GRID.finer(FINER_LEVELS)
    return int(cell_seed(level, column_of(fine, lon) >> level, row_of(fine, lat) >> level))


@pytest.mark.parametrize("level", range(FINER_LEVELS + 1))
@pytest.mark.parametrize("n_others", [1, 3, 20])
def test_a_list_that_shares_its_key_with_a_quarter_is_not_lost(n_others: int, level: int) -> None:
    """Terms can be made up so that two lists have one key: nobody may lose by that but who made them up."""
    shared = TERM ^ _seed_at(1.0, 1.0, level) ^ _seed_at(100.0, 50.0, FINER_LEVELS)
    others = [Stored(i + 1, Region(100.0, 50.0, 100.0, 50.0), ((shared,),)) for i in range(n_others)]
    crowd = [Stored(i + 100, Region(1.0, 1.0, 1.0 + i / 1000, 1.0), ((TERM,),)) for i in range(40)]
    terms = tuple(sorted((TERM, shared)))
    published = [Published(1000, lon, lat, terms, frozenset(terms)) for lon, lat in ((100, 50), (1, 1))]
    for stored in (others + crowd, crowd + others, crowd[:20] + others + crowd[20:]):
        scan = Scan()
        scan.insert(stored)
        index = built(IndexSettings(GRID, COUNTERS, split_at=4), stored)
        assert probe(index, published) == scan.matches(published)


def test_terms_that_all_belong_at_the_end_of_the_table_do_not_let_it_grow_without_end() -> None:
    stored = [
        Stored(i + 1, Region(1.0, 1.0, 1.0, 1.0), ((_term_with_key((1 << 64) - 4 * (i + 1)),),))
        for i in range(sized(1500, plain=300))
    ]
    index = built(IndexSettings(GRID, COUNTERS), stored)
    assert len(index._arrays.list_table) < 200 * len(stored)
    terms = tuple(sorted(each.clauses[0][0] for each in stored[::7]))
    published = [Published(2000, 1.0, 1.0, terms, frozenset(terms))]
    expected = [(0, each.seq_from) for each in stored[::7]]
    assert probe(index, published) == expected
    assert probe(index.compacted(0), published) == expected


def _term_with_key(key: int) -> int:
    """Return the term whose list has a key in the cell of a point; the keys of a cell are one to one."""
    for factor in (0xC4CEB9FE1A85EC53, 0xFF51AFD7ED558CCD):
        key ^= key >> 33
        key = key * pow(factor, -1, 1 << 64) % (1 << 64)
    return key ^ key >> 33 ^ _seed_at(1.0, 1.0, FINER_LEVELS)
