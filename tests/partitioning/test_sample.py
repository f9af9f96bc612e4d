"""A digest says which publications and subscriptions meet in a list, as counting all pairs would."""

from __future__ import annotations

import numpy as np
import pytest

from matching.scan import cells_of as cells_of_region
from partitioning.samples import SAMPLES, make_sample
from ps2stream.model.space import Grid, Region, cover
from ps2stream.partitioning.sample import LIST_GRID, LIST_MAX_CELLS, Digest, Sample, cells_of, digest_of
from ps2stream.text.frequencies import count_terms, frequency

pytestmark = pytest.mark.kernel


def posting_terms(sample: Sample, row: int) -> list[int]:
    """Pick the rarest term of every clause, the smaller hash of two that are as rare."""
    table = count_terms(sample.terms)
    found = []
    for clause in range(sample.clause_offsets[row], sample.clause_offsets[row + 1]):
        terms = sample.clause_terms[sample.term_offsets[clause] : sample.term_offsets[clause + 1]]
        found.append(min((frequency(table, term), int(term)) for term in terms)[1])
    return found


def meets(sample: Sample, publication: int, subscription: int) -> bool:
    """Say whether a region is posted in the list cell that a point lies in."""
    area = cover(LIST_GRID, sample.bounds, 4 * subscription, LIST_MAX_CELLS)
    side = 1 << (LIST_GRID.bits - area.level)
    cell = LIST_GRID.cell(float(sample.lon[publication]), float(sample.lat[publication]))
    column, row = (cell % (1 << LIST_GRID.bits)) >> area.level, (cell >> LIST_GRID.bits) >> area.level
    return (column - area.column) % side < area.n_columns and 0 <= row - area.row < area.n_rows


def test_candidates_of_a_digest_are_the_pairs_that_meet_under_a_posting_term() -> None:
    sample = make_sample(60, 40, seed=3)
    digest = digest_of(sample)
    standing = [set(lists_of(digest, row)) for row in range(40)]
    for publication in range(60):
        reads = digest.reads
        start, stop = reads.offsets[publication], reads.offsets[publication + 1]
        lists = reads.lists[start:stop].tolist()
        expected = sum(
            term in sample.terms.row(publication)
            for row in range(40)
            if meets(sample, publication, row)
            for term in set(posting_terms(sample, row))
        )
        assert sum(each in standing[row] for row in range(40) for each in lists) == expected


def lists_of(digest: Digest, subscription: int) -> list[int]:
    stands = digest.stands
    return stands.lists[stands.offsets[subscription] : stands.offsets[subscription + 1]].tolist()  # type: ignore[no-any-return]


def test_terms_are_numbered_both_ways() -> None:
    sample = make_sample(30, 20)
    digest = digest_of(sample)
    assert np.all(digest.vocabulary[1:] > digest.vocabulary[:-1])
    for row in range(30):
        assert digest.vocabulary[digest.words.row(row)].tolist() == sample.terms.row(row).tolist()
    for row in range(20):
        first, last = sample.clause_offsets[row : row + 2]
        terms = sample.clause_terms[sample.term_offsets[first] : sample.term_offsets[last]]
        assert sorted(digest.vocabulary[digest.keywords.row(row)]) == sorted(terms)


def test_publications_stand_in_for_subscriptions_that_are_not_there_yet() -> None:
    digest = digest_of(make_sample(50, 0))
    assert (digest.n_publications, digest.n_subscriptions) == (50, 50)
    assert np.all(np.diff(digest.reads.offsets) >= 1), "each finds at least itself"


def test_subscriptions_stand_in_for_publications_that_are_not_there_yet() -> None:
    digest = digest_of(make_sample(0, 30))
    assert (digest.n_publications, digest.n_subscriptions) == (30, 30)
    assert np.all(np.diff(digest.reads.offsets) >= 1)


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_any_sample_has_a_digest(sample: Sample) -> None:
    digest = digest_of(sample)
    assert len(digest.reads.offsets) == digest.n_publications + 1
    assert len(digest.stands.offsets) == digest.n_subscriptions + 1
    assert digest.reads.lists.max(initial=-1) < digest.n_lists


def test_a_digest_knows_what_the_sample_stands_for() -> None:
    digest = digest_of(make_sample(100, 20)._replace(n_live=1000, churn=0.2))
    assert digest.live_weight == 50
    assert digest.churn_weight == pytest.approx(0.2 * 100 / 20)
    assert digest_of(make_sample(100, 20)).live_weight == 1


def test_cells_are_those_of_points_and_regions() -> None:
    grid = Grid.over((-50.0, -50.0, 50.0, 50.0), 3)
    boxes = [(170.0, -10.0, -170.0, 10.0), (-20.0, -20.0, 20.0, 20.0), (40.0, 40.0, 60.0, 60.0)]
    lon, lat = np.array([-60.0, 0.0, 49.0]), np.array([0.0, -50.0, 90.0])
    cells = cells_of(grid, lon, lat, np.array(boxes).reshape(-1))
    assert (cells.row * 8 + cells.column).tolist() == [grid.cell(*p) for p in zip(lon, lat, strict=True)]
    for i, box in enumerate(boxes):
        found = {
            int((cells.first_row[i] + r) * 8 + (cells.first_column[i] + c) % 8)
            for r in range(cells.n_rows[i])
            for c in range(cells.n_columns[i])
        }
        assert found == set(cells_of_region(grid, Region(*box)))
