"""Subscriptions that move between indexes, and the small kernels that postings are made of."""

import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.indexes import COUNTERS, built, drop, end, probe
from matching.scan import (
    TERMS,
    Published,
    Scan,
    Stored,
    columns_of,
    random_clauses,
    random_publications,
    random_subscriptions,
)
from ps2stream.arrays import MappedStorage, frozen
from ps2stream.matching.contract import FOREVER, IndexSettings, Subscriptions
from ps2stream.matching.index import GI2
from ps2stream.matching.posting import FILTER_WORDS, STEPS, fill_filter, fingerprint_of, quantise
from ps2stream.matching.probe import holds
from ps2stream.model.space import WORLD, Grid, Region, column_of
from sizes import examples
from strategies import longitudes

pytestmark = pytest.mark.kernel

terms = st.integers(0, (1 << 64) - 1)
seeds = st.integers(0, 1 << 32)

CHOSEN = IndexSettings(Grid.over(WORLD, 5), COUNTERS)
OTHER_COUNTERS = Grid.over(WORLD, 4)


def _stored_in(index: GI2, seqs: Iterable[int]) -> Subscriptions:
    return index.stored(frozen(np.array(list(seqs), np.int64)))


def _assert_same(one: Subscriptions, other: Subscriptions) -> None:
    for name, mine, theirs in zip(Subscriptions._fields, one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs, err_msg=name)


def _assert_same_contents(one: GI2, other: GI2) -> None:
    for name in ("subscriptions", "bytes"):
        np.testing.assert_array_equal(one.cell_counters()[name], other.cell_counters()[name], err_msg=name)


@given(seeds)
@settings(max_examples=examples(15), deadline=None)
def test_what_was_dropped_is_never_found_again_and_all_else_is(seed: int) -> None:
    rng = random.Random(seed)
    scan = Scan()
    scan.insert(random_subscriptions(rng, 40, 1))
    stored = list(scan.stored.values())
    index = built(CHOSEN, stored)
    published = random_publications(rng, 30, range(100), stored)
    gone = rng.sample(sorted(scan.stored), 15)
    assert drop(index, gone) == 15
    scan.drop(gone)
    assert probe(index, published) == scan.matches(published)
    assert drop(index, gone) == 0, "it is not there any more"
    assert end(index, dict.fromkeys(gone, 90)) == 0
    assert probe(index, published) == scan.matches(published)
    assert index.counts().n_subscriptions == len(scan.stored)
    _assert_same_contents(index, built(CHOSEN, list(scan.stored.values())))


def test_dropping_is_counted_once_also_for_what_had_ended_before() -> None:
    stored = random_subscriptions(random.Random(3), 10, 1)
    index = built(CHOSEN, stored)
    seqs = [each.seq_from for each in stored]
    end(index, dict.fromkeys(seqs[:4], 50))
    assert drop(index, seqs[2:6]) == 4
    assert (index.counts().n_subscriptions, index.counts().n_ended) == (4, 6)
    _assert_same_contents(index, built(CHOSEN, stored[6:]))
    drop(index, seqs)
    assert index.counts().n_subscriptions == 0
    assert not index.cell_counters()["subscriptions"].any()
    assert not index.cell_counters()["bytes"].any()


def test_dropping_what_is_not_stored_changes_nothing() -> None:
    index = built(CHOSEN, random_subscriptions(random.Random(3), 10, 1))
    counts = index.counts()
    assert drop(index, [2, 4, -7, 1000]) == 0
    assert drop(index, []) == 0
    assert index.counts() == counts


def test_a_dropped_subscription_may_come_back_in_another_form() -> None:
    region = Region(0.0, 0.0, 10.0, 10.0)
    other, apart = TERMS[1], TERMS[2]
    index = built(CHOSEN, [Stored(7, region, ((TERMS[0], other),)), Stored(9, region, ((other,),))])
    here = Published(50, 5.0, 5.0, tuple(sorted(TERMS[:3])), frozenset(TERMS[:3]))
    assert probe(index, [here]) == [(0, 7), (0, 9)]
    drop(index, [7])
    index.insert(columns_of([Stored(7, region, ((other, TERMS[0]), (apart,)))]))
    assert probe(index, [here]) == [(0, 7), (0, 9)], "once, although old postings lead to its old form"
    assert probe(index, [here._replace(owned=frozenset({TERMS[0]}))]) == []
    assert probe(index, [here._replace(owned=frozenset({other}))]) == [(0, 7), (0, 9)]
    assert index.counts().n_subscriptions == 2
    _assert_same(_stored_in(index, [7]), columns_of([Stored(7, region, ((other, TERMS[0]), (apart,)))]))
    assert end(index, {7: 60}) == 1, "the form that is there now"
    assert probe(index, [here._replace(seq=61)]) == [(0, 9)]


def test_probes_remove_the_postings_of_what_was_dropped_whatever_the_horizon() -> None:
    point = Region(1.0, 1.0, 1.0, 1.0)
    index = built(CHOSEN, [Stored(seq, point, ((TERMS[0],),)) for seq in range(1, 11)])
    drop(index, range(3, 9))
    assert index.counts().n_postings == 10
    here = Published(30, 1.0, 1.0, (TERMS[0],), frozenset({TERMS[0]}))
    assert probe(index, [here]) == [(0, seq) for seq in (1, 2, 9, 10)]
    assert index.counts().n_postings == 4


@pytest.mark.usefixtures("tiny_start")
@pytest.mark.parametrize("seed", range(6))
def test_a_history_of_moves_in_and_out_finds_what_a_scan_finds(seed: int) -> None:
    """Maps and lists grow with dropped subscriptions in them, which must not come back that way."""
    rng = random.Random(seed)
    grid = Grid.over(WORLD, rng.randint(1, 10))
    chosen = IndexSettings(grid, COUNTERS, rng.choice((1, 4, 64)), rng.choice((2, 4, 128)))
    index, scan = GI2.create(chosen), Scan()
    elsewhere: list[Stored] = []
    seq = 1
    for _ in range(12):
        begun = random_subscriptions(rng, rng.choice((0, 2, 8)), seq)
        seq += 50
        # What went elsewhere may come back as it was, or with its terms in another order.
        rng.shuffle(elsewhere)
        back = [elsewhere.pop() for _ in range(len(elsewhere) // 2)]
        back = [Stored(each.seq_from, each.region, random_clauses(rng)) for each in back]
        index.insert(columns_of([*back, *begun]))
        scan.insert([*back, *begun])
        leaving = rng.sample(scan.live(), len(scan.live()) // 2)
        assert drop(index, [each.seq_from for each in leaving]) == len(leaving)
        scan.drop(each.seq_from for each in leaving)
        elsewhere += leaving
        ends = {each.seq_from: seq - 1 for each in rng.sample(scan.live(), len(scan.live()) // 5)}
        assert end(index, ends) == len(ends)
        scan.end(ends)
        published = random_publications(rng, 8, range(seq), [*scan.stored.values(), *elsewhere])
        assert probe(index, published) == scan.matches(published)
        assert index.counts().n_subscriptions == len(scan.live())
        if rng.random() < 0.3:
            index = index.compacted(-1)
            assert probe(index, published) == scan.matches(published)
            assert index.counts().n_ended == len(scan.stored) - len(scan.live())
        everything = sorted(scan.stored)
        _assert_same(_stored_in(index, everything), columns_of([scan.stored[each] for each in everything]))


def test_compaction_is_due_and_leaves_nothing_of_what_was_dropped() -> None:
    stored = [Stored(seq, Region(0, 0, 0, 0), ((TERMS[0],),)) for seq in range(1, 1501)]
    index = built(CHOSEN, stored)
    drop(index, range(1, 1026))
    assert index.should_compact()
    compacted = index.compacted(-1)
    assert (compacted.counts().n_subscriptions, compacted.counts().n_ended) == (475, 0)
    assert compacted.counts().n_postings == 475
    _assert_same_contents(compacted, index)
    assert len(_stored_in(compacted, range(1, 1501)).seq_from) == 475
    compacted.insert(columns_of(stored))
    assert compacted.counts().n_subscriptions == 1500


def test_the_map_grows_past_what_was_dropped_and_what_came_back() -> None:
    """A map that is filled anew must lead to the newest form of a subscription only."""
    region = Region(0.0, 0.0, 1.0, 1.0)
    index = GI2.create(CHOSEN, n_subs=1)
    here = Published(10_000, 0.5, 0.5, tuple(sorted(TERMS)), frozenset(TERMS))
    for turn in range(40):
        clauses = ((TERMS[turn % len(TERMS)],),)
        back = [Stored(seq, region, clauses) for seq in range(1, 11)]
        others = [Stored(1000 + 10 * turn + i, region, ((TERMS[0],),)) for i in range(5)]
        index.insert(columns_of(back + others))
        _assert_same(_stored_in(index, range(1, 11)), columns_of(back))
        found = probe(index, [here])
        assert [seq for _, seq in found if seq < 1000] == list(range(1, 11))
        assert drop(index, range(1, 11)) == 10
        assert len(_stored_in(index, range(1, 11)).seq_from) == 0
    assert index.counts().n_subscriptions == 200


@given(seeds)
@settings(max_examples=examples(15), deadline=None)
def test_stored_returns_exactly_what_was_inserted(seed: int) -> None:
    rng = random.Random(seed)
    stored = random_subscriptions(rng, 25, 1)
    index = built(CHOSEN, stored)
    chosen = rng.sample(stored, rng.randint(0, 25))
    asked = [each.seq_from for each in chosen]
    _assert_same(_stored_in(index, asked), columns_of(chosen))
    asked[rng.randint(0, len(asked)) : 0] = [2, 1 << 40]
    _assert_same(_stored_in(index, asked), columns_of(chosen))


def test_what_is_stored_is_a_copy_with_the_ends_there_are_now() -> None:
    stored = random_subscriptions(random.Random(5), 6, 1)
    index = built(CHOSEN, stored)
    end(index, {stored[2].seq_from: 77})
    copied = _stored_in(index, [each.seq_from for each in stored])
    assert copied.seq_to.tolist()[2] == 77
    drop(index, [each.seq_from for each in stored])
    again = GI2.create(CHOSEN)
    again.insert(Subscriptions(*map(frozen, copied)))
    published = random_publications(random.Random(5), 30, range(100), stored)
    scan = Scan()
    scan.insert(stored)
    scan.end({stored[2].seq_from: 77})
    assert probe(again, published) == scan.matches(published)


@given(seeds, st.integers(1, 5))
@settings(max_examples=examples(15), deadline=None)
def test_an_index_counted_in_another_grid_counts_as_if_it_had_always_done_so(seed: int, bits: int) -> None:
    rng = random.Random(seed)
    stored = random_subscriptions(rng, 30, 1)
    counters = Grid.over(rng.choice([WORLD, (-10.0, -10.0, 10.0, 10.0)]), bits)
    index, always = built(CHOSEN, stored), built(IndexSettings(CHOSEN.grid, counters), stored)
    ends = {each.seq_from: 70 for each in stored[::4]}
    gone = [each.seq_from for each in stored[1::4]]
    for each in (index, always):
        end(each, ends)
        drop(each, gone)
    published = random_publications(rng, 20, range(100), stored)
    probe(index, published)
    recounted = index.counted_in(counters)
    assert recounted.settings == always.settings
    assert not recounted.cell_counters()["publications"].any(), "work counts from 0 again"
    assert probe(recounted, published) == probe(always, published)
    for name, counted in always.cell_counters().items():
        if name != "candidates":  # the first probe has removed dead postings from one of them
            np.testing.assert_array_equal(recounted.cell_counters()[name], counted, err_msg=name)
    assert recounted.counts().n_subscriptions == always.counts().n_subscriptions
    later = {each.seq_from: 80 for each in stored[2::4]}
    more = random_subscriptions(rng, 10, 200)
    for each in (recounted, always):
        end(each, later)
        drop(each, [stored[3].seq_from])
        each.insert(columns_of(more))
    _assert_same_contents(recounted, always)


def test_a_mapped_index_that_is_counted_in_another_grid_can_be_opened_with_it(tmp_path: Path) -> None:
    stored = random_subscriptions(random.Random(8), 50, 1)
    index = built(CHOSEN, stored, storage=MappedStorage(tmp_path))
    counted = index.counted_in(OTHER_COUNTERS)
    settings = IndexSettings(CHOSEN.grid, OTHER_COUNTERS)
    opened = GI2.open(settings, MappedStorage(tmp_path))
    for name, values in counted.cell_counters().items():
        np.testing.assert_array_equal(opened.cell_counters()[name], values, err_msg=name)
    _assert_same_contents(opened, built(settings, stored))
    # Fewer cells again: the files shrink with the grid.
    coarser = IndexSettings(CHOSEN.grid, Grid.over(WORLD, 1))
    opened.counted_in(coarser.counters)
    _assert_same_contents(GI2.open(coarser, MappedStorage(tmp_path)), built(coarser, stored))


@given(longitudes, longitudes, st.integers(1, 12), st.integers(0, 12))
@settings(max_examples=examples(100), deadline=None)
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
    assert 0 <= at[0] <= at[1] < STEPS


@given(st.lists(terms, max_size=20), st.lists(terms, max_size=20))
@settings(max_examples=examples(100), deadline=None)
def test_the_filter_of_a_text_has_the_fingerprints_of_its_terms_and_that_of_none(
    some: list[int], others: list[int]
) -> None:
    row = np.array(others + some, np.uint64)
    bits = np.full(FILTER_WORDS + 2, 5, np.uint64)
    fill_filter(row, len(others), len(row), bits, 1)
    prints = {int(fingerprint_of(np.uint64(term))) for term in some}
    assert 0 not in prints
    held = {bit for bit in range(256) if int(bits[1 + bit // 64]) >> bit % 64 & 1}
    assert held == prints | {0}
    assert bits[0] == bits[-1] == 5, "its own range only"


@given(st.sets(terms, max_size=20), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_holds_looks_at_its_own_range_only(inside: set[int], data: st.DataObject) -> None:
    before, after = data.draw(st.lists(terms, max_size=3)), data.draw(st.lists(terms, max_size=3))
    row = np.array([*before, *sorted(inside), *after], np.uint64)
    asked = data.draw(st.one_of(terms, st.sampled_from(row.tolist()) if len(row) else terms))
    start = len(before)
    assert holds(row, start, start + len(inside), np.uint64(asked)) == (asked in inside)


def test_what_has_ended_before_it_comes_counts_as_ended() -> None:
    stored = [Stored(seq, Region(0, 0, 1, 1), ((TERMS[0],),), seq_to=50 + seq) for seq in range(1, 5)]
    index, ended = GI2.create(CHOSEN), built(CHOSEN, [replace(each, seq_to=FOREVER) for each in stored])
    index.insert(columns_of(stored))
    end(ended, {each.seq_from: each.seq_to for each in stored})
    assert (index.counts().n_subscriptions, index.counts().n_ended) == (0, 4)
    for name, counted in ended.cell_counters().items():
        np.testing.assert_array_equal(index.cell_counters()[name], counted, err_msg=name)
