"""The registry decides on updates as a dictionary of live subscriptions would."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.arrays import HeapStorage, MappedStorage, Storage, UInt64s, create_struct
from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.registry import index as index_module
from ps2stream.registry.index import Registry
from ps2stream.registry.layout import DTYPES, HEAD_SIZE, RegistryArrays
from ps2stream.routing.layout import Postings
from sizes import examples

pytestmark = pytest.mark.kernel

IDS = ["a", "b", "ab", "ü", "a" * 300, "\x00", "日本"]


class Update(NamedTuple):
    is_subscribe: bool
    id: str


batches_of_updates = st.lists(
    st.lists(st.builds(Update, st.sampled_from([True, True, False]), st.sampled_from(IDS)), max_size=12),
    min_size=1,
    max_size=6,
)


class Book:
    """The slow registry: who lives, and every version there was."""

    def __init__(self) -> None:
        self.live: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self.ends: dict[int, int] = {}

    def apply(self, seq: int, update: Update) -> tuple[int | None, bool]:
        """Return the seq that the update ended, and whether it asked for something unknown."""
        ended = self.live.pop(update.id, None)
        if ended is not None:
            self.ends[ended] = seq
        if update.is_subscribe:
            self.live[update.id] = seq
            self.names[seq] = update.id
        return ended, ended is None and not update.is_subscribe


def tiny_registry(storage: Storage | None = None) -> Registry:
    """Begin without any capacity, so that every array and the map grow again and again."""
    sizes = dict.fromkeys(DTYPES, 1) | {"head": HEAD_SIZE}
    storage = storage or HeapStorage()
    arrays = create_struct(RegistryArrays, DTYPES, sizes, storage)
    return Registry(storage, arrays)


def _describe(registry: Registry, seqs: Sequence[int]) -> None:
    """Give each version a region and postings that tell its seq."""
    bounds = np.array([[seq, -seq, seq + 1, seq + 2] for seq in seqs], np.float64).reshape(-1)
    lengths = [1 + seq % 3 for seq in seqs]
    terms = np.array([seq for seq, n in zip(seqs, lengths, strict=True) for _ in range(n)], np.uint64)
    registry.describe(Postings(bounds, np.cumsum([0, *lengths], dtype=np.int64), terms))


def _apply(registry: Registry, book: Book, seq: int, updates: list[Update]) -> int:
    """Apply a batch to both and compare their verdicts; return the next free seq."""
    seqs = np.arange(seq, seq + 2 * len(updates), 2)
    is_subscribe = np.array([update.is_subscribe for update in updates], np.bool_)
    verdicts = registry.apply(seqs, is_subscribe, pa.array([update.id for update in updates], pa.string()))
    _describe(registry, seqs[is_subscribe].tolist())
    for row, update in enumerate(updates):
        ended, is_unknown = book.apply(int(seqs[row]), update)
        assert verdicts.is_unknown[row] == is_unknown
        version = verdicts.ended_version[row]
        assert (None if version < 0 else int(registry.seq_from(np.array([version]))[0])) == ended
    return seq + 2 * len(updates)


def _assert_equal(registry: Registry, book: Book) -> None:
    live = sorted(book.live.values())
    assert registry.live_seqs().tolist() == live
    assert registry.n_live == len(live)
    assert registry.ids(np.array(live, np.int64)).to_pylist() == [book.names[seq] for seq in live]


@given(batches_of_updates)
@settings(max_examples=examples(60), deadline=None)
def test_the_registry_decides_as_a_dictionary_does(batches: list[list[Update]]) -> None:
    registry, book, seq = tiny_registry(), Book(), 1
    for updates in batches:
        seq = _apply(registry, book, seq, updates)
        _assert_equal(registry, book)
    ever = np.array(sorted(book.names), np.int64)
    assert registry.ids(ever).to_pylist() == [book.names[seq] for seq in sorted(book.names)]
    assert registry.n_ended == len(book.names) - len(book.live)
    postings = registry.postings(np.arange(len(ever))[::-1].copy())
    for row, each in enumerate(ever[::-1].tolist()):
        assert postings.terms[postings.offsets[row] : postings.offsets[row + 1]].tolist() == [each] * (
            1 + each % 3
        )
        assert postings.bounds[4 * row : 4 * row + 4].tolist() == [each, -each, each + 1, each + 2]


@given(batches_of_updates)
@settings(max_examples=examples(30), deadline=None)
def test_ids_of_equal_hashes_are_kept_apart(batches: list[list[Update]]) -> None:
    def collide(data: object, offsets: object, hashes: UInt64s) -> None:
        hashes[:] = 7

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "hash_ids", collide)
        registry, book, seq = tiny_registry(), Book(), 1
        for updates in batches:
            seq = _apply(registry, book, seq, updates)
            _assert_equal(registry, book)


@given(batches_of_updates, st.integers(0, 100))
@settings(max_examples=examples(30), deadline=None)
def test_compaction_forgets_what_ended_by_the_horizon_and_nothing_else(
    batches: list[list[Update]], horizon: int
) -> None:
    registry, book, seq = Registry.create(), Book(), 1
    for updates in batches:
        seq = _apply(registry, book, seq, updates)
    compacted = registry.compacted(horizon)
    _assert_equal(compacted, book)
    known = [each for each in sorted(book.names) if _is_known(compacted, each)]
    assert known == [
        each for each in sorted(book.names) if each not in book.ends or book.ends[each] > horizon
    ]
    assert compacted.n_ended == len(known) - len(book.live)
    # It goes on as the old one would have done.
    _apply(compacted, book, seq, [Update(True, name) for name in IDS] + [Update(False, name) for name in IDS])
    _assert_equal(compacted, book)


def _is_known(registry: Registry, seq: int) -> bool:
    try:
        registry.ids(np.array([seq]))
    except StateError:
        return False
    return True


def test_what_ended_after_the_horizon_is_still_known_by_its_seq() -> None:
    registry, book = Registry.create(), Book()
    _apply(registry, book, 1, [Update(True, "a"), Update(True, "b"), Update(True, "a"), Update(False, "b")])
    # a: 1..5 replaced; 5 lives. b: 3..7 ended.
    assert [_is_known(registry.compacted(5), seq) for seq in (1, 3, 5)] == [False, True, True]
    assert [_is_known(registry.compacted(7), seq) for seq in (1, 3, 5)] == [False, False, True]


def test_compaction_is_due_when_the_ended_are_many() -> None:
    registry, book = Registry.create(), Book()
    seq = _apply(registry, book, 1, [Update(True, f"s{i}") for i in range(1100)])
    seq = _apply(registry, book, seq, [Update(False, f"s{i}") for i in range(1024)])
    assert not registry.should_compact()
    seq = _apply(registry, book, seq, [Update(False, "s1024")])
    assert registry.should_compact()
    assert not registry.compacted(seq).should_compact()


def test_an_unknown_seq_is_an_error_wherever_it_would_lie() -> None:
    registry, book = Registry.create(), Book()
    _apply(registry, book, 10, [Update(True, "a"), Update(True, "b")])
    for seq in (9, 11, 13, -1):
        with pytest.raises(StateError, match="does not know"):
            registry.ids(np.array([seq]))


@pytest.mark.parametrize("seqs", [[11, 12], [5, 6], [13, 12], [20, 13, 14], [13, 13]])
def test_subscriptions_that_begin_out_of_order_are_refused(seqs: list[int]) -> None:
    registry, book = Registry.create(), Book()
    _apply(registry, book, 10, [Update(True, "a"), Update(True, "b")])
    ids = pa.array([f"c{row}" for row in range(len(seqs))])
    with pytest.raises(StateError, match="must begin in the order of their seqs, after 12"):
        registry.apply(np.array(seqs), np.ones(len(seqs), np.bool_), ids)
    _assert_equal(registry, book)


def test_a_reader_sees_what_the_writer_wrote(tmp_path: Path) -> None:
    registry, book, seq = tiny_registry(MappedStorage(tmp_path)), Book(), 1
    rng = random.Random(6)
    for _ in range(5):
        updates = [Update(rng.random() < 0.7, rng.choice(IDS) + str(rng.randrange(40))) for _ in range(60)]
        seq = _apply(registry, book, seq, updates)
        _assert_equal(Registry.open(MappedStorage(tmp_path)), book)


@pytest.mark.parametrize("name", DTYPES)
def test_a_file_that_was_cut_short_is_reported(tmp_path: Path, name: str) -> None:
    registry, book = tiny_registry(MappedStorage(tmp_path)), Book()
    _apply(registry, book, 1, [Update(True, f"subscription {i}") for i in range(50)])
    path = tmp_path / f"{name}.array"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // 8 * 8)
    with pytest.raises(StateError, match=rf"{name}\.array is cut short"):
        Registry.open(MappedStorage(tmp_path))


def test_a_registry_of_nothing_answers() -> None:
    registry = Registry.create()
    none = np.empty(0, np.int64)
    registry.apply(none, np.empty(0, np.bool_), pa.array([], pa.string()))
    assert registry.ids(none).to_pylist() == []
    assert registry.live_seqs().tolist() == []
    assert registry.compacted(0).n_live == 0
    assert registry.n_bytes > 0


@given(batches_of_updates)
@settings(max_examples=examples(30), deadline=None)
def test_versions_are_known_by_their_seqs_and_the_newest_one_by_being_last(
    batches: list[list[Update]],
) -> None:
    registry, book, seq = tiny_registry(), Book(), 1
    assert registry.newest_seq() == BEFORE_ALL_SEQS
    for updates in batches:
        seq = _apply(registry, book, seq, updates)
        ever = np.array(sorted(book.names), np.int64)
        assert registry.newest_seq() == max(book.names, default=BEFORE_ALL_SEQS)
        assert registry.versions_of(ever).tolist() == list(range(len(ever)))
        live = registry.live_versions()
        assert registry.seq_from(live).tolist() == registry.live_seqs().tolist() == sorted(book.live.values())


@given(batches_of_updates, st.data())
@settings(max_examples=examples(30), deadline=None)
def test_other_posting_terms_take_the_place_of_those_of_some_versions_only(
    batches: list[list[Update]], data: st.DataObject
) -> None:
    registry, book, seq = tiny_registry(), Book(), 1
    for updates in batches:
        seq = _apply(registry, book, seq, updates)
    ever = sorted(book.names)
    chosen = data.draw(st.lists(st.sampled_from(ever), unique=True) if ever else st.just([]))
    counts = [1 + each % 3 for each in chosen]
    others = [1000 * each + i for each, n in zip(chosen, counts, strict=True) for i in range(n)]
    nowhere = np.zeros(4 * len(chosen))
    reposted = Postings(nowhere, np.cumsum([0, *counts], dtype=np.int64), np.array(others, np.uint64))
    registry.repost(np.array(chosen, np.int64), reposted)
    postings = registry.postings(np.arange(len(ever)))
    for row, each in enumerate(ever):
        terms = postings.terms[postings.offsets[row] : postings.offsets[row + 1]].tolist()
        n = 1 + each % 3
        assert terms == ([1000 * each + i for i in range(n)] if each in chosen else [each] * n)
        assert postings.bounds[4 * row] == each, "regions stay"
    # It lasts: compaction and later versions keep it.
    seq = _apply(registry, book, seq, [Update(True, "another")])
    compacted = registry.compacted(BEFORE_ALL_SEQS)
    again = compacted.postings(np.arange(len(ever)))
    np.testing.assert_array_equal(again.terms, postings.terms)


def test_what_is_not_known_cannot_be_posted_anew() -> None:
    registry, book = Registry.create(), Book()
    _apply(registry, book, 10, [Update(True, "a")])
    with pytest.raises(StateError, match="does not know"):
        registry.repost(np.array([11]), Postings(np.zeros(4), np.array([0, 1]), np.array([7], np.uint64)))


def test_versions_that_end_after_a_seq_are_those_that_live_and_those_that_ended_later() -> None:
    registry = tiny_registry()
    begins = [True, True, True, False, False]
    registry.apply(np.array([1, 3, 5, 10, 20]), np.array(begins), pa.array(["a", "b", "c", "a", "b"]))
    assert registry.seq_from(registry.versions_ending_after(9)).tolist() == [1, 3, 5]
    assert registry.seq_from(registry.versions_ending_after(10)).tolist() == [3, 5]
    assert registry.seq_from(registry.versions_ending_after(20)).tolist() == [5]
    assert registry.seq_to(registry.versions_of(np.array([3]))).tolist() == [20]
