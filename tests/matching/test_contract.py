"""Every index of a worker finds what a scan finds, and every change may be made twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from matching.indexes import COUNTERS, drop, end, probe
from matching.scan import (
    TERMS,
    Published,
    Scan,
    Stored,
    cells_of,
    columns_of,
    probes_of,
    random_publications,
    random_subscriptions,
)
from ps2stream.arrays import MappedStorage
from ps2stream.matching.contract import IndexSettings, Subscriptions, WorkerIndex
from ps2stream.matching.index import GI2
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.model.space import WORLD, Grid, Region
from ps2stream_bench.micro.naive_index import NaiveIndex

Create = Callable[[IndexSettings], WorkerIndex]
SETTINGS = IndexSettings(Grid.over(WORLD, 5), COUNTERS)


@pytest.fixture(
    params=[*(pytest.param(each, marks=pytest.mark.kernel) for each in ("GI2", "GI2, mapped")), "naive"]
)
def create(request: pytest.FixtureRequest, tmp_path: Path) -> Create:
    """Make an index; all tests of this file run on each."""
    ways: dict[str, Create] = {
        "GI2": GI2.create,
        "GI2, mapped": lambda settings: GI2.create(settings, MappedStorage(tmp_path / "arrays")),
        "naive": NaiveIndex,
    }
    return ways[request.param]


@pytest.mark.parametrize("seed", range(6))
def test_a_history_of_inserts_ends_drops_and_compactions_finds_what_a_scan_finds(
    create: Create, seed: int
) -> None:
    rng = random.Random(seed)
    settings = IndexSettings(Grid.over(WORLD, rng.randint(1, 7)), COUNTERS, rng.choice((1, 16)))
    index, scan = create(settings), Scan()
    seq, horizon = 1, BEFORE_ALL_SEQS
    for _ in range(8):
        batch = random_subscriptions(rng, rng.choice((0, 1, 5, 20)), seq)
        again = rng.sample(list(scan.stored.values()), min(3, len(scan.stored)))
        index.insert(columns_of([*batch, *again]))
        scan.insert(batch)
        seq += 50
        leaving = rng.sample(scan.live(), len(scan.live()) // 4)
        ends = {each.seq_from: max(each.seq_from + 1, seq - rng.randrange(50)) for each in leaving}
        assert end(index, ends) == len(ends)
        scan.end(ends)
        dropped = rng.sample(sorted(scan.stored), len(scan.stored) // 8)
        assert drop(index, dropped) == len(dropped)
        scan.drop(dropped)
        published = random_publications(rng, 8, range(max(0, horizon + 1), seq), list(scan.stored.values()))
        assert probe(index, published, horizon) == scan.matches(published)
        assert index.counts().n_subscriptions == len(scan.live())
        if rng.random() < 0.3:
            index = index.compacted(horizon)
            assert probe(index, published, horizon) == scan.matches(published)
        if rng.random() < 0.5:
            horizon = seq - 1
            scan.stored = {key: each for key, each in scan.stored.items() if each.seq_to > horizon}


@pytest.mark.parametrize("seed", range(4))
def test_who_owns_a_term_by_which_plan_decides_who_reports(create: Create, seed: int) -> None:
    rng = random.Random(seed)
    scan = Scan()
    scan.insert(random_subscriptions(rng, 40, 1))
    index = create(SETTINGS)
    index.insert(columns_of(list(scan.stored.values())))
    published = [
        each._replace(owned_before=frozenset(rng.sample(each.terms, len(each.terms) // 2)))
        for each in random_publications(rng, 30, range(82), list(scan.stored.values()))
    ]
    for switch_seq in (BEFORE_ALL_SEQS, 30, 200):
        assert probe(index, published, switch_seq=switch_seq) == scan.matches(published, switch_seq)


def test_changes_that_are_made_again_change_nothing(create: Create) -> None:
    rng = random.Random(5)
    stored = random_subscriptions(rng, 30, 1)
    index = create(SETTINGS)
    index.insert(columns_of(stored))
    ends = {each.seq_from: 100 for each in stored[::3]}
    end(index, ends)
    published = random_publications(rng, 30, range(120), stored)
    found, cells = probe(index, published), index.cell_counters()
    counts = index.counts()
    index.insert(columns_of(stored))
    assert end(index, ends) == len(ends)
    assert end(index, {each.seq_from: 110 for each in stored[::3]}) == len(ends), "an end only moves back"
    assert (index.counts().n_subscriptions, index.counts().n_postings) == (
        counts.n_subscriptions,
        counts.n_postings,
    )
    for name, counted in cells.items():
        np.testing.assert_array_equal(index.cell_counters()[name], counted, err_msg=name)
    assert probe(index, published) == found


def test_only_the_rows_that_are_asked_for_are_inserted(create: Create) -> None:
    rng = random.Random(3)
    stored = random_subscriptions(rng, 20, 1)
    index, scan = create(SETTINGS), Scan()
    index.insert(columns_of(stored), np.array([2, 3, 11]))
    scan.insert([stored[2], stored[3], stored[11]])
    published = random_publications(rng, 30, range(45), stored)
    assert probe(index, published) == scan.matches(published)
    assert index.counts().n_subscriptions == 3


def test_what_is_not_stored_is_neither_ended_nor_dropped_nor_returned(create: Create) -> None:
    index = create(SETTINGS)
    index.insert(columns_of(random_subscriptions(random.Random(1), 3, 1)))
    assert end(index, {2: 10, 4: 10, -7: 10}) == 0
    assert drop(index, [2, 4, -7]) == 0
    assert len(index.stored(np.array([2, 4, -7])).seq_from) == 0
    assert index.counts().n_subscriptions == 3


def test_stored_subscriptions_are_those_that_were_inserted_with_their_ends(create: Create) -> None:
    stored = random_subscriptions(random.Random(8), 25, 1)
    index = create(SETTINGS)
    index.insert(columns_of(stored))
    end(index, {stored[4].seq_from: 90})
    kept = index.stored(np.array([each.seq_from for each in stored]))
    expected = columns_of(stored)
    seq_to = expected.seq_to.copy()
    seq_to[4] = 90
    for name, wanted in expected._replace(seq_to=seq_to)._asdict().items():
        np.testing.assert_array_equal(getattr(kept, name), wanted, err_msg=name)


def test_what_was_dropped_may_come_back_in_another_form(create: Create) -> None:
    here = Region(1.0, 1.0, 2.0, 2.0)
    before, after = Stored(10, here, ((TERMS[1], TERMS[2]),)), Stored(10, here, ((TERMS[2], TERMS[1]),))
    index = create(SETTINGS)
    index.insert(columns_of([before]))
    assert drop(index, [10]) == 1
    assert drop(index, [10]) == 0
    index.insert(columns_of([after]))
    published = Published(20, 1.5, 1.5, (TERMS[1], TERMS[2]), frozenset({TERMS[2]}))
    assert probe(index, [published]) == [(0, 10)]
    assert probe(index, [published._replace(owned=frozenset({TERMS[1]}))]) == []
    assert index.stored(np.array([10])).terms.tolist() == [TERMS[2], TERMS[1]]


def test_counters_tell_the_work_and_the_contents_of_cells(create: Create) -> None:
    rng = random.Random(11)
    stored = random_subscriptions(rng, 25, 1)
    index = create(SETTINGS)
    index.insert(columns_of(stored))
    published = random_publications(rng, 20, range(52), stored)
    cells = [COUNTERS.cell(each.lon, each.lat) for each in published]
    found = probe(index, published)
    assert found
    counted = index.cell_counters()
    assert counted["publications"].tolist() == _dense(Counter(cells))
    assert counted["matches"].tolist() == _dense(Counter(cells[row] for row, _ in found))
    assert (counted["candidates"] >= counted["matches"]).all()
    n_owned = Counter(dict.fromkeys(cells, 0))
    for cell, each in zip(cells, published, strict=True):
        n_owned[cell] += len(each.owned)
    assert all(counted["lookups"][cell] >= n for cell, n in n_owned.items())
    end(index, {each.seq_from: 100 for each in stored[::2]})
    touched = [(cell, each.n_bytes) for each in stored[1::2] for cell in cells_of(COUNTERS, each.region)]
    sizes: Counter[int] = Counter()
    for cell, size in touched:
        sizes[cell] += size
    counted = index.cell_counters()
    assert counted["subscriptions"].tolist() == _dense(Counter(cell for cell, _ in touched))
    assert counted["bytes"].tolist() == _dense(sizes)
    totals = index.counts()
    assert (totals.n_publications, totals.n_matches) == (len(published), len(found))
    assert totals.n_candidates == counted["candidates"].sum()
    probe(index, published[:7])
    once_more, counted = index.counts(), index.cell_counters()
    assert once_more.n_publications == counted["publications"].sum() == len(published) + 7
    assert once_more.n_candidates == counted["candidates"].sum() > totals.n_candidates
    assert once_more.n_matches == counted["matches"].sum()
    assert totals.n_bytes > 0


def test_what_was_found_belongs_to_the_caller(create: Create) -> None:
    rng = random.Random(12)
    stored = random_subscriptions(rng, 25, 1)
    index = create(SETTINGS)
    index.insert(columns_of(stored))
    published = random_publications(rng, 20, range(52), stored)
    found = index.probe(probes_of(published), BEFORE_ALL_SEQS)
    assert len(found.publication) > 1
    kept = [column.copy() for column in found]
    index.probe(probes_of(published[::-1]), BEFORE_ALL_SEQS)
    for column, before in zip(found, kept, strict=True):
        np.testing.assert_array_equal(column, before)


def test_counted_in_another_grid_contents_are_counted_there_and_work_begins_anew(create: Create) -> None:
    rng = random.Random(13)
    stored = random_subscriptions(rng, 25, 1)
    index = create(SETTINGS)
    index.insert(columns_of(stored))
    published = random_publications(rng, 20, range(52), stored)
    found = probe(index, published)
    other = Grid.over((-20.0, -20.0, 40.0, 40.0), 4)
    counted = index.counted_in(other)
    assert counted.settings.counters == other
    expected = Counter(cell for each in stored for cell in cells_of(other, each.region))
    contents = counted.cell_counters()["subscriptions"]
    assert contents.tolist() == [expected[cell] for cell in range(other.n_cells)]
    assert counted.counts().n_publications == 0
    assert probe(counted, published) == found


def test_compaction_is_due_when_the_dead_are_many_and_keeps_the_counters(create: Create) -> None:
    stored = [Stored(seq, Region(0, 0, 0, 0), ((TERMS[0],),)) for seq in range(1, 1101)]
    index = create(SETTINGS)
    index.insert(columns_of(stored))
    end(index, dict.fromkeys(range(1, 1025), 2000))
    assert not index.should_compact()
    end(index, {1025: 2000})
    assert index.should_compact()
    here = Published(2100, 0.0, 0.0, (TERMS[0],), frozenset({TERMS[0]}))
    found = probe(index, [here])
    compacted = index.compacted(2000)
    assert not compacted.should_compact()
    for name, counted in index.cell_counters().items():
        np.testing.assert_array_equal(compacted.cell_counters()[name], counted, err_msg=name)
    assert probe(compacted, [here], horizon=2000) == found == [(0, seq) for seq in range(1026, 1101)]


def test_an_empty_index_answers(create: Create) -> None:
    index = create(SETTINGS)
    here = Published(1, 0.0, 0.0, (TERMS[0],), frozenset({TERMS[0]}))
    assert probe(index, [here]) == []
    assert probe(index, []) == []
    assert isinstance(index.stored(np.array([1])), Subscriptions)
    assert not index.should_compact()


def _dense(counter: Counter[int]) -> list[int]:
    return [counter[cell] for cell in range(COUNTERS.n_cells)]
