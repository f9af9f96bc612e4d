"""GI2 finds what a scan finds, however it came to hold what it holds."""

import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.indexes import COUNTERS, built, end, probe
from matching.scan import (
    TERMS,
    Published,
    Scan,
    Stored,
    cells_of,
    columns_of,
    n_candidates,
    random_publications,
    random_subscriptions,
)
from ps2stream.arrays import Array, HeapStorage, MappedStorage
from ps2stream.errors import StateError
from ps2stream.matching.contract import FOREVER, Found, IndexSettings
from ps2stream.matching.index import GI2
from ps2stream.matching.layout import DTYPES, N_WORDS
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.model.space import WORLD, Grid, Region
from sizes import examples

pytestmark = pytest.mark.kernel

grids = st.builds(
    Grid.over,
    st.sampled_from([WORLD, (-10.0, -10.0, 10.0, 10.0), (5.0, 5.0, 5.0, 5.0)]),
    st.integers(1, 12),
)
#: Lists are divided as soon as they hold two postings, or hardly ever.
index_settings = st.builds(
    IndexSettings, grids, st.just(COUNTERS), st.integers(1, 64), st.sampled_from([2, 4, 128])
)
seeds = st.integers(0, 1 << 32)


@given(index_settings, seeds)
@settings(max_examples=examples(25), deadline=None)
def test_probe_finds_what_a_scan_finds(chosen: IndexSettings, seed: int) -> None:
    rng = random.Random(seed)
    scan = Scan()
    scan.insert(random_subscriptions(rng, 40, 1))
    index = built(chosen, list(scan.stored.values()))
    published = random_publications(rng, 40, range(82), list(scan.stored.values()))
    assert probe(index, published) == scan.matches(published)


@pytest.mark.usefixtures("tiny_start")
@pytest.mark.parametrize("seed", range(8))
def test_a_history_of_inserts_ends_and_forgetting_finds_what_a_scan_finds(seed: int) -> None:
    rng = random.Random(seed)
    grid = Grid.over(WORLD, rng.randint(1, 12))
    chosen = IndexSettings(grid, COUNTERS, rng.choice((1, 4, 16, 64)), rng.choice((2, 4, 128)))
    index, scan = GI2.create(chosen), Scan()
    seq, horizon = 1, BEFORE_ALL_SEQS
    for _ in range(10):
        batch = random_subscriptions(rng, rng.choice((0, 1, 5, 20)), seq)
        again = rng.sample(list(scan.stored.values()), min(3, len(scan.stored)))
        index.insert(columns_of([*batch, *again]))
        scan.insert(batch)
        seq += 50
        leaving = rng.sample(scan.live(), len(scan.live()) // 4)
        ends = {each.seq_from: max(each.seq_from + 1, seq - rng.randrange(50)) for each in leaving}
        assert end(index, ends) == len(ends)
        scan.end(ends)
        published = random_publications(rng, 8, range(max(0, horizon + 1), seq), list(scan.stored.values()))
        assert probe(index, published, horizon) == scan.matches(published)
        assert index.counts().n_subscriptions == len(scan.live())
        if rng.random() < 0.3:
            index = index.compacted(horizon)
            assert probe(index, published, horizon) == scan.matches(published)
        if rng.random() < 0.5:
            horizon = seq - 1
            scan.stored = {key: each for key, each in scan.stored.items() if each.seq_to > horizon}


@pytest.mark.usefixtures("tiny_start")
@pytest.mark.parametrize("chunk", [1, 7, 200])
def test_the_size_of_chunks_changes_nothing(chunk: int) -> None:
    rng = random.Random(chunk)
    stored = random_subscriptions(rng, 200, 1)
    chosen = IndexSettings(Grid.over(WORLD, 6), COUNTERS)
    index = GI2.create(chosen)
    for start in range(0, len(stored), chunk):
        index.insert(columns_of(stored[start : start + chunk]))
    whole = built(chosen, stored)
    published = random_publications(rng, 30, range(402), stored)
    assert probe(index, published) == probe(whole, published)
    for name, counted in whole.cell_counters().items():
        np.testing.assert_array_equal(index.cell_counters()[name], counted, err_msg=name)
    assert index.counts().n_postings == whole.counts().n_postings
    assert index.levels_in_use() == whole.levels_in_use()


def test_rows_that_are_not_asked_for_are_not_inserted() -> None:
    rng = random.Random(3)
    stored = random_subscriptions(rng, 20, 1)
    index = GI2.create(IndexSettings(Grid.over(WORLD, 5), COUNTERS))
    index.insert(columns_of(stored), np.array([2, 3, 11]))
    scan = Scan()
    scan.insert([stored[2], stored[3], stored[11]])
    published = random_publications(rng, 30, range(45), stored)
    assert probe(index, published) == scan.matches(published)
    assert index.counts().n_subscriptions == 3


def test_inserting_and_ending_again_change_nothing() -> None:
    rng = random.Random(5)
    stored = random_subscriptions(rng, 30, 1)
    index = built(IndexSettings(Grid.over(WORLD, 5), COUNTERS), stored)
    ends = {each.seq_from: 100 for each in stored[::3]}
    end(index, ends)
    published = random_publications(rng, 30, range(120), stored)
    found, counts, cells = probe(index, published), index.counts(), index.cell_counters()
    index.insert(columns_of(stored))
    assert end(index, ends) == len(ends)
    assert replace(index.counts(), n_bytes=counts.n_bytes) == counts
    for name, counted in cells.items():
        np.testing.assert_array_equal(index.cell_counters()[name], counted, err_msg=name)
    assert probe(index, published) == found


def test_ending_what_is_not_stored_is_not_counted() -> None:
    index = built(IndexSettings(Grid.over(WORLD, 5), COUNTERS), random_subscriptions(random.Random(1), 3, 1))
    assert end(index, {2: 10, 4: 10, -7: 10}) == 0
    assert index.counts().n_ended == 0


def test_a_publication_sees_what_began_before_it_and_ends_after_it() -> None:
    everywhere = Stored(10, Region(*WORLD), ((TERMS[0],),))
    index = built(IndexSettings(Grid.over(WORLD, 5), COUNTERS), [everywhere])
    end(index, {10: 20})
    published = [
        Published(seq, 0.0, 0.0, (TERMS[0],), frozenset({TERMS[0]})) for seq in (9, 10, 11, 19, 20, 21)
    ]
    assert probe(index, published) == [(2, 10), (3, 10)]


@given(seeds, st.integers(1, 12), st.sampled_from([1, 16, 64]))
@settings(max_examples=examples(10), deadline=None)
def test_counters_of_cells_add_up(seed: int, bits: int, max_cells: int) -> None:
    rng = random.Random(seed)
    stored = random_subscriptions(rng, 25, 1)
    chosen = IndexSettings(Grid.over(WORLD, bits), COUNTERS, max_cells)
    index = built(chosen, stored)
    scan = Scan()
    scan.insert(stored)
    published = random_publications(rng, 20, range(52), stored)
    rows = [COUNTERS.cell(each.lon, each.lat) for each in published]
    matches = Counter(rows[row] for row, _ in probe(index, published))
    candidates: Counter[int] = Counter()
    lookups: Counter[int] = Counter()
    for cell, each in zip(rows, published, strict=True):
        candidates[cell] += n_candidates(chosen.grid, max_cells, stored, each)
        lookups[cell] += len(each.owned) * len(index.levels_in_use())
    counted = index.cell_counters()
    assert _dense(Counter(rows)) == counted["publications"].tolist()
    assert _dense(matches) == counted["matches"].tolist()
    assert _dense(candidates) == counted["candidates"].tolist()
    assert _dense(lookups) == counted["lookups"].tolist()
    end(index, {each.seq_from: 100 for each in stored[::2]})
    counted = index.cell_counters()
    touched = [(cell, each.n_bytes) for each in stored[1::2] for cell in cells_of(COUNTERS, each.region)]
    assert _dense(Counter(cell for cell, _ in touched)) == counted["subscriptions"].tolist()
    bytes_of_cells: Counter[int] = Counter()
    for cell, size in touched:
        bytes_of_cells[cell] += size
    assert _dense(bytes_of_cells) == counted["bytes"].tolist()
    totals = index.counts()
    assert totals.n_publications == len(published)
    assert totals.n_matches == matches.total()
    assert totals.n_candidates == candidates.total()


def _dense(counter: Counter[int]) -> list[int]:
    return [counter[cell] for cell in range(COUNTERS.n_cells)]


def test_sums_of_work_begin_anew_with_the_cells_and_go_on_after_a_compaction() -> None:
    rng = random.Random(5)
    stored = random_subscriptions(rng, 40, 1)
    index = built(IndexSettings(Grid.over(WORLD, 5), COUNTERS), stored)
    published = random_publications(rng, 30, range(100, 200), stored)
    found = probe(index, published)
    before = index.counts()
    compacted = index.compacted(0)
    assert _work_of(compacted) == (before.n_publications, before.n_candidates, before.n_matches)
    counted = compacted.counted_in(Grid.over(WORLD, 2))
    assert _work_of(counted) == (0, 0, 0)
    probe(counted, published)
    assert _work_of(counted) == (len(published), before.n_candidates, len(found))
    cells = counted.cell_counters(["publications", "candidates", "matches"])
    assert _work_of(counted) == tuple(cells[name].sum() for name in ("publications", "candidates", "matches"))


def _work_of(index: GI2) -> tuple[int, int, int]:
    counts = index.counts()
    return counts.n_publications, counts.n_candidates, counts.n_matches


def test_the_counters_of_an_emptied_index_are_zero() -> None:
    stored = random_subscriptions(random.Random(2), 40, 1)
    index = built(IndexSettings(Grid.over(WORLD, 5), COUNTERS), stored)
    end(index, {each.seq_from: 1000 for each in stored})
    assert not index.cell_counters()["subscriptions"].any()
    assert not index.cell_counters()["bytes"].any()
    assert index.counts().n_subscriptions == 0


def test_probes_remove_dead_postings_only_up_to_the_horizon() -> None:
    point = Region(1.0, 1.0, 1.0, 1.0)
    stored = [Stored(seq, point, ((TERMS[0],),)) for seq in range(1, 11)]
    index = built(IndexSettings(Grid.over(WORLD, 5), COUNTERS), stored)
    end(index, {seq: 20 + seq for seq in range(1, 7)})
    here = Published(30, 1.0, 1.0, (TERMS[0],), frozenset({TERMS[0]}))
    assert probe(index, [here._replace(seq=22)], horizon=21) == [(0, seq) for seq in range(3, 11)]
    assert index.counts().n_postings == 9, "only the one that ended at 21 is out of reach"
    assert probe(index, [here], horizon=24) == [(0, seq) for seq in range(7, 11)]
    assert index.counts().n_postings == 6
    assert probe(index, [here], horizon=29) == [(0, seq) for seq in range(7, 11)]
    assert index.counts().n_postings == 4
    index.insert(columns_of([Stored(40, point, ((TERMS[0],),))]))
    assert probe(index, [here._replace(seq=50)], horizon=29) == [(0, seq) for seq in (7, 8, 9, 10, 40)]


def test_a_list_that_was_emptied_can_be_filled_again() -> None:
    point = Region(1.0, 1.0, 1.0, 1.0)
    index = GI2.create(IndexSettings(Grid.over(WORLD, 5), COUNTERS))
    for start in range(0, 90, 10):
        stored = [Stored(start + i, point, ((TERMS[0],),)) for i in range(1, 6)]
        index.insert(columns_of(stored))
        here = Published(start + 7, 1.0, 1.0, (TERMS[0],), frozenset({TERMS[0]}))
        assert probe(index, [here], horizon=start - 1) == [(0, each.seq_from) for each in stored]
        end(index, {each.seq_from: start + 8 for each in stored})
        assert probe(index, [here._replace(seq=start + 9)], horizon=start + 8) == []
        assert index.counts().n_postings == 0


@pytest.mark.parametrize("capacity", [1, 2, 3, 64])
def test_more_matches_than_there_is_capacity_for_are_found_all_the_same(capacity: int) -> None:
    rng = random.Random(capacity)
    scan = Scan()
    scan.insert([Stored(seq, Region(*WORLD), ((TERMS[seq % 3],),)) for seq in range(1, 40)])
    index = built(IndexSettings(Grid.over(WORLD, 5), COUNTERS), list(scan.stored.values()))
    index._found = Found(np.empty(capacity, np.int64), np.empty(capacity, np.int64))
    published = random_publications(rng, 25, range(50), list(scan.stored.values()))
    found = probe(index, published)
    assert found == scan.matches(published)
    assert index.counts().n_matches == len(found)
    assert index.counts().n_publications == len(published)


@given(seeds, st.integers(1, 10))
@settings(max_examples=examples(10), deadline=None)
def test_compaction_keeps_matches_and_counters_and_drops_the_rest(seed: int, bits: int) -> None:
    rng = random.Random(seed)
    stored = random_subscriptions(rng, 40, 1)
    index = built(IndexSettings(Grid.over(WORLD, bits), COUNTERS), stored)
    end(index, {each.seq_from: 100 for each in stored[::4]} | {each.seq_from: 200 for each in stored[1::4]})
    published = random_publications(rng, 20, range(101, 300), stored)
    before = probe(index, published)
    compacted = index.compacted(100)
    assert compacted.counts().n_ended == len(stored[1::4])
    assert compacted.counts().n_subscriptions == index.counts().n_subscriptions
    for name, counted in index.cell_counters().items():
        np.testing.assert_array_equal(compacted.cell_counters()[name], counted, err_msg=name)
    assert probe(compacted, published, horizon=100) == before
    live = {each.seq_from: 400 for each in stored[2::4]}
    assert end(compacted, live) == len(live)
    assert end(compacted, {each.seq_from: 400 for each in stored[::4]}) == 0


def test_compaction_is_due_when_the_dead_are_many() -> None:
    stored = [Stored(seq, Region(0, 0, 0, 0), ((TERMS[0],),)) for seq in range(1, 1101)]
    index = built(IndexSettings(Grid.over(WORLD, 5), COUNTERS), stored)
    end(index, dict.fromkeys(range(1, 1025), 2000))
    assert not index.should_compact()
    end(index, {1025: 2000})
    assert index.should_compact()
    assert not index.compacted(2000).should_compact()


@pytest.mark.usefixtures("tiny_start")
def test_a_mapped_index_equals_one_on_the_heap_also_when_it_is_opened_again(tmp_path: Path) -> None:
    rng = random.Random(11)
    chosen = IndexSettings(Grid.over(WORLD, 6), COUNTERS)
    stored = random_subscriptions(rng, 120, 1)
    storage = MappedStorage(tmp_path / "arrays")
    mapped, heap = GI2.create(chosen, storage), GI2.create(chosen)
    for start in range(0, len(stored), 30):
        part = stored[start : start + 30]
        ends = {each.seq_from: start + 300 for each in part[::5]}
        published = random_publications(rng, 15, range(400), stored)
        heap.insert(columns_of(part))
        mapped.insert(columns_of(part))
        assert end(heap, ends) == end(mapped, ends)
        again = GI2.open(chosen, MappedStorage(tmp_path / "arrays"))
        assert probe(again, published) == probe(heap, published)
        assert _without_bytes(again) == _without_bytes(heap)
        mapped = again  # what one object wrote the next one goes on with
    compacted = mapped.compacted(350, MappedStorage(tmp_path / "compacted"))
    (tmp_path / "compacted").rename(tmp_path / "moved")
    moved = compacted.moved(MappedStorage(tmp_path / "moved"))
    more = random_subscriptions(rng, 120, 1000)
    moved.insert(columns_of(more))
    heap.insert(columns_of(more))
    published = random_publications(rng, 30, range(1, 1300), [*stored, *more])
    published = [each for each in published if each.seq > 350]
    assert probe(moved, published, 350) == probe(heap, published)
    assert not (tmp_path / "compacted").exists()
    reopened = GI2.open(chosen, MappedStorage(tmp_path / "moved"))
    assert probe(reopened, published, 350) == probe(heap, published)


def _without_bytes(index: GI2) -> tuple[int, ...]:
    counts = index.counts()
    return (counts.n_subscriptions, counts.n_ended, counts.n_postings, counts.n_lists, counts.n_publications)


SAVED = IndexSettings(Grid.over(WORLD, 6), COUNTERS)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the files of an index, to be copied by whoever damages them."""
    directory = tmp_path_factory.mktemp("saved")
    index = GI2.create(SAVED, MappedStorage(directory), n_subs=1)
    stored = random_subscriptions(random.Random(4), 400, 1)
    index.insert(columns_of(stored))
    end(index, {each.seq_from: 1000 for each in stored[::3]})
    return directory


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("left", [0.0, 0.5, 0.9])
def test_a_file_that_was_cut_short_is_told_from_a_whole_one(
    saved: Path, tmp_path: Path, name: str, left: float
) -> None:
    directory = tmp_path / "copied"
    shutil.copytree(saved, directory)
    assert GI2.open(SAVED, MappedStorage(directory)).counts().n_ended == 134
    path = directory / f"{name}.array"
    itemsize = np.dtype(DTYPES[name]).itemsize
    whole = path.stat().st_size // itemsize
    if name in ("records", "ends", "postings"):
        whole //= 2  # these have capacity for more than they hold
    with path.open("r+b") as file:
        file.truncate(int(left * whole) * itemsize)
    with pytest.raises(StateError, match=name):
        GI2.open(SAVED, MappedStorage(directory))


def test_a_missing_file_is_reported_by_its_name(tmp_path: Path) -> None:
    chosen = IndexSettings(Grid.over(WORLD, 6), COUNTERS)
    GI2.create(chosen, MappedStorage(tmp_path))
    (tmp_path / "postings.array").unlink()
    with pytest.raises(StateError, match=r"postings\.array cannot be mapped"):
        GI2.open(chosen, MappedStorage(tmp_path))


def test_an_index_for_other_cells_is_not_opened(tmp_path: Path) -> None:
    GI2.create(IndexSettings(Grid.over(WORLD, 6), COUNTERS), MappedStorage(tmp_path))
    finer = IndexSettings(Grid.over(WORLD, 6), Grid.over(WORLD, 5))
    with pytest.raises(StateError, match="is cut short: 1,024 entries were needed; got 64"):
        GI2.open(finer, MappedStorage(tmp_path))


@pytest.mark.parametrize("n_subs", [0, 1, 1024])
def test_nothing_to_insert_or_probe_is_fine(n_subs: int) -> None:
    index = GI2.create(IndexSettings(Grid.over(WORLD, 6), COUNTERS), n_subs=n_subs)
    here = Published(30, 1.0, 1.0, (TERMS[0],), frozenset({TERMS[0]}))
    assert probe(index, [here]) == []
    assert end(index, {7: 9}) == 0
    index.insert(columns_of([]))
    assert probe(index, []) == []
    assert index.counts().n_subscriptions == 0
    assert index.levels_in_use() == []


def test_an_end_that_is_forever_is_no_end() -> None:
    index = built(IndexSettings(Grid.over(WORLD, 6), COUNTERS), [Stored(1, Region(*WORLD), ((TERMS[0],),))])
    assert end(index, {1: FOREVER}) == 1
    assert index.counts().n_ended == 0


class _FullStorage(HeapStorage):
    """Give no more capacity for postings while it is full."""

    is_full = False

    def grow(self, name: str, array: Array, size: int) -> Array:
        if self.is_full and name == "postings":
            raise StateError("no space left")
        return super().grow(name, array, size)


@pytest.mark.usefixtures("tiny_start")
def test_an_insert_that_found_no_room_takes_nothing_from_the_next_one() -> None:
    storage = _FullStorage()
    index = GI2.create(IndexSettings(Grid.over(WORLD, 4), COUNTERS), storage)
    stored = [Stored(seq, Region(1.0, 1.0, 1.0, 1.0), ((TERMS[0],),)) for seq in range(1, 7)]
    storage.is_full = True
    with pytest.raises(StateError, match="no space left"):
        index.insert(columns_of(stored[:3]))
    storage.is_full = False
    index.insert(columns_of(stored[3:]))
    index.insert(columns_of(stored[:3]))
    here = Published(10, 1.0, 1.0, (TERMS[0],), frozenset({TERMS[0]}))
    assert probe(index, [here]) == [(0, each.seq_from) for each in stored]


def test_more_words_than_positions_tell_apart_are_refused() -> None:
    index = GI2.create(IndexSettings(Grid.over(WORLD, 4), COUNTERS))
    index._arrays.head[N_WORDS] = (1 << 32) - 7
    with pytest.raises(StateError, match=r"4,294,967,295 words; 4,294,967,296 were needed; use more workers"):
        index.insert(columns_of([Stored(1, Region(*WORLD), ((TERMS[0],),))]))
