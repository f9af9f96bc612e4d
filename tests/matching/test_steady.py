"""An index that is compacted while it is used loses nothing, whatever happens between two pieces."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.indexes import COUNTERS, drop, end, probe
from matching.scan import (
    TERMS,
    Published,
    Scan,
    Stored,
    columns_of,
    random_publications,
    random_subscriptions,
)
from ps2stream.arrays import MappedStorage
from ps2stream.matching.contract import IndexSettings
from ps2stream.matching.steady import SteadyGI2
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.model.space import WORLD, Grid, Region
from sizes import examples

pytestmark = pytest.mark.kernel

SETTINGS = IndexSettings(Grid.over(WORLD, 4), COUNTERS, split_at=2)
TERM = TERMS[0]


class _Pair:
    """An index and the scan beside it."""

    def __init__(self, rng: random.Random, chosen: IndexSettings) -> None:
        self.rng, self.seq, self.horizon = rng, 1, BEFORE_ALL_SEQS
        self.index, self.scan = SteadyGI2.create(chosen), Scan()

    def change(self) -> None:
        """Insert, end, drop or insert again, or look; all of it in one of many orders."""
        rng, scan = self.rng, self.scan
        match rng.choice(("insert", "insert", "town", "again", "back", "end", "drop", "look")):
            case "insert":
                self._insert(random_subscriptions(rng, rng.choice((1, 5, 20)), self.seq))
            case "town":
                self._insert([_in_town(rng, self.seq + 2 * i) for i in range(rng.choice((3, 30)))])
            case "again":
                known = list(scan.stored.values())
                self.index.insert(columns_of(rng.sample(known, min(4, len(known)))))
            case "back":
                gone = self._some(3)
                self._drop(gone)
                self._insert([_in_town(rng, each.seq_from) for each in gone])
            case "end":
                leaving = rng.sample(scan.live(), len(scan.live()) // 3)
                ends = {
                    each.seq_from: max(each.seq_from + 1, self.seq - rng.randrange(20)) for each in leaving
                }
                assert end(self.index, ends) == len(ends)
                scan.end(ends)
            case "drop":
                self._drop(self._some(2))
            case "look":
                self.look()

    def look(self) -> None:
        floor = max(0, self.horizon + 1)
        published = random_publications(
            self.rng, 8, range(floor, self.seq + 1), list(self.scan.stored.values())
        )
        published += [_visitor(self.rng, self.seq) for _ in range(4)]
        assert probe(self.index, published, self.horizon) == self.scan.matches(published)
        assert self.index.counts().n_subscriptions == len(self.scan.live())

    def forget(self) -> None:
        self.horizon = self.seq - 1
        kept = {key: each for key, each in self.scan.stored.items() if each.seq_to > self.horizon}
        self.scan.stored = kept

    def _insert(self, batch: list[Stored]) -> None:
        self.index.insert(columns_of(batch))
        self.scan.insert(batch)
        self.seq = max([self.seq, *(each.seq_from + 1 for each in batch)]) + 1

    def _some(self, n: int) -> list[Stored]:
        alive = self.scan.live()
        return self.rng.sample(alive, min(n, len(alive)))

    def _drop(self, leaving: list[Stored]) -> None:
        assert drop(self.index, [each.seq_from for each in leaving]) == len(leaving)
        self.scan.drop(each.seq_from for each in leaving)


def _in_town(rng: random.Random, seq: int) -> Stored:
    west, south = 1.0 + 4.0 * rng.random(), 1.0 + 4.0 * rng.random()
    size = rng.choice((0.0, 0.05, 0.5, 5.0))
    return Stored(seq, Region(west, south, west + size, south + size), ((TERM,),))


def _visitor(rng: random.Random, seq: int) -> Published:
    terms = tuple(sorted(TERMS))
    return Published(seq, 1.0 + 5.0 * rng.random(), 1.0 + 5.0 * rng.random(), terms, frozenset(terms))


@pytest.mark.usefixtures("tiny_start")
@given(st.integers(0, 1 << 32), st.sampled_from([3, 16, 1000]))
@settings(max_examples=examples(20), deadline=None)
def test_whatever_changes_between_pieces_it_finds_what_a_scan_finds(seed: int, at_once: int) -> None:
    rng = random.Random(seed)
    pair = _Pair(
        rng, IndexSettings(Grid.over(WORLD, rng.randint(1, 8)), COUNTERS, 16, rng.choice((2, 8, 128)))
    )
    for _ in range(3):
        for _ in range(rng.randrange(8)):
            pair.change()
        if rng.random() < 0.7:
            pair.forget()
        pair.index.begin_compaction(pair.horizon, at_once)
        while pair.index.is_compacting:
            if rng.random() < 0.2:
                pair.change()
            if rng.random() < 0.05:
                pair.forget()
            for _ in range(rng.randrange(1, 6)):
                pair.index.go_on_compacting()
        pair.look()


@given(st.integers(0, 1 << 32), st.sampled_from([1, 7]))
@settings(max_examples=examples(20), deadline=None)
def test_what_comes_out_is_what_one_step_gives(seed: int, at_once: int) -> None:
    rng = random.Random(seed)
    stored = [*random_subscriptions(rng, 60, 1), *(_in_town(rng, 201 + i) for i in range(60))]
    index = SteadyGI2.create(SETTINGS)
    index.insert(columns_of(stored))
    end(index, {each.seq_from: 500 for each in stored[::3]} | {each.seq_from: 700 for each in stored[1::3]})
    drop(index, [each.seq_from for each in stored[5::9]])
    probe(index, [_visitor(rng, 600) for _ in range(5)])
    expected = index.compacted(500)
    index.begin_compaction(500, at_once)
    while index.is_compacting:
        index.go_on_compacting()
    for name, wanted in expected._arrays._asdict().items():
        np.testing.assert_array_equal(getattr(index._arrays, name), wanted, err_msg=name)


@pytest.mark.usefixtures("tiny_start")
def test_lists_are_divided_again_when_it_is_done() -> None:
    rng = random.Random(4)
    index = SteadyGI2.create(SETTINGS)
    index.begin_compaction(BEFORE_ALL_SEQS, at_once=1)
    crowd = [_in_town(rng, seq) for seq in range(1, 200)]
    index.insert(columns_of(crowd))
    before = index.counts().n_lists
    while index.is_compacting:
        index.go_on_compacting()
    index.insert(columns_of([_in_town(rng, seq) for seq in range(200, 260)]))
    assert index.counts().n_lists > before + 4


def test_it_ends_though_more_comes_with_every_piece_than_a_piece_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ps2stream.matching.steady._CHANGED_AT_ONCE", 1)
    rng = random.Random(2)
    index = SteadyGI2.create(SETTINGS)
    index.insert(columns_of([_in_town(rng, seq) for seq in range(1, 400)]))
    index.begin_compaction(BEFORE_ALL_SEQS, at_once=100)
    seq, n_pieces = 400, 0
    while index.is_compacting:
        index.insert(columns_of([_in_town(rng, seq + i) for i in range(10)]))
        index.go_on_compacting()
        seq, n_pieces = seq + 10, n_pieces + 1
        assert n_pieces < 200
    assert index.counts().n_subscriptions == seq - 1


def test_what_the_copy_leaves_out_is_not_begun_anew_by_being_inserted_again() -> None:
    rng = random.Random(3)
    stored = [_in_town(rng, seq) for seq in range(1, 21)]
    index = SteadyGI2.create(SETTINGS)
    index.insert(columns_of(stored))
    end(index, {each.seq_from: 100 for each in stored[:10]})
    index.begin_compaction(200, at_once=5)
    index.insert(columns_of(stored))
    while index.is_compacting:
        index.go_on_compacting()
    counts = index.counts()
    assert (counts.n_subscriptions, counts.n_ended) == (10, 0)


def test_many_changes_at_once_are_made_again_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ps2stream.matching.steady._CHANGED_AT_ONCE", 10)
    rng = random.Random(5)
    index = SteadyGI2.create(SETTINGS)
    index.begin_compaction(BEFORE_ALL_SEQS, at_once=10_000)
    index.insert(columns_of([_in_town(rng, seq) for seq in range(1, 101)]))
    end(index, dict.fromkeys(range(1, 31), 500))
    drop(index, range(90, 101))
    n_pieces = 0
    while index.is_compacting:
        assert index.counts().n_subscriptions == 59
        index.go_on_compacting()
        n_pieces += 1
    assert n_pieces > 14
    assert (index.counts().n_subscriptions, index.counts().n_ended) == (59, 30 + 11)


def test_mapped_arrays_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="files of its own"):
        SteadyGI2.create(SETTINGS, MappedStorage(tmp_path / "arrays"))


def test_without_a_compaction_it_notes_no_changes() -> None:
    index = SteadyGI2.create(SETTINGS)
    index.insert(columns_of([_in_town(random.Random(1), 1)]))
    index.go_on_compacting()
    assert not index.is_compacting
    assert not index._changes
