"""A seq leads to its version however seqs are spread."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import StateError
from ps2stream.model.schemas import AFTER_ALL_SEQS, BEFORE_ALL_SEQS
from ps2stream.registry.index import Registry
from sizes import examples

pytestmark = pytest.mark.kernel

FIRST, LAST = BEFORE_ALL_SEQS + 1, AFTER_ALL_SEQS - 1
#: Dense, with gaps of any size, and over all seqs that there are.
seqs_of_all_kinds = st.one_of(
    st.sets(st.integers(0, 200), max_size=80),
    st.sets(st.one_of(st.integers(0, 50), st.integers(10**6, 10**6 + 50)), max_size=60),
    st.sets(st.integers(FIRST, LAST), max_size=40),
    st.sets(st.one_of(st.integers(FIRST, FIRST + 20), st.integers(LAST - 20, LAST)), max_size=30),
)


def _filled(seqs: list[int], n_batches: int) -> Registry:
    registry = Registry.create()
    for part in np.array_split(np.array(seqs, np.int64), n_batches):
        ids = pa.array([f"subscription {seq}" for seq in part.tolist()], pa.string())
        registry.apply(part, np.ones(len(part), np.bool_), ids)
    return registry


@given(seqs_of_all_kinds, st.integers(1, 4), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_every_seq_leads_to_its_version_and_no_other_seq_to_any(
    seqs: set[int], n_batches: int, data: st.DataObject
) -> None:
    known = sorted(seqs)
    registry = _filled(known, n_batches)
    order = data.draw(st.permutations(range(len(known))))
    wanted = np.array([known[i] for i in order], np.int64)
    assert registry.versions_of(wanted).tolist() == list(order)
    assert registry.ids(wanted).to_pylist() == [f"subscription {seq}" for seq in wanted.tolist()]
    near = {seq + step for seq in seqs for step in (-1, 1)} | {FIRST, 0, LAST}
    for seq in sorted(near - seqs):
        if FIRST <= seq <= LAST:
            with pytest.raises(StateError, match="does not know"):
                registry.versions_of(np.array([seq]))


@pytest.mark.parametrize("known", [FIRST, -5, 0, 5, LAST])
def test_a_seq_that_is_as_far_away_as_can_be_is_not_known(known: int) -> None:
    registry = _filled([known], 1)
    assert registry.versions_of(np.array([known])).tolist() == [0]
    for seq in {BEFORE_ALL_SEQS, FIRST, known - 2**62, known + 2**62, LAST, AFTER_ALL_SEQS} - {known}:
        if BEFORE_ALL_SEQS <= seq <= AFTER_ALL_SEQS:
            with pytest.raises(StateError, match="does not know"):
                registry.versions_of(np.array([seq]))


@pytest.mark.parametrize(
    "seqs",
    [
        np.arange(1, 40_001),
        np.concatenate([np.arange(20_000), 20_000 + 12 * np.arange(4_000)]),
        np.concatenate([np.arange(3_000), 10**15 + np.arange(3_000), 10**16 + 7 * np.arange(3_000)]),
        np.cumsum(np.random.default_rng(3).pareto(0.5, 9_000).clip(1, 1e9).astype(np.int64)),
    ],
    ids=["dense", "dense, then sparse", "clusters", "gaps of all sizes"],
)
def test_the_directory_follows_as_versions_are_appended(seqs: np.ndarray) -> None:
    registry = Registry.create()
    for part in np.array_split(seqs, 9):
        registry.apply(part, np.ones(len(part), np.bool_), pa.array(part.astype(str).tolist()))
        known = seqs[seqs <= part[-1]]
        sample = np.random.default_rng(1).permutation(len(known))[:300]
        assert registry.versions_of(known[sample]).tolist() == sample.tolist()
    missing = np.setdiff1d(seqs + 1, seqs)[:50]
    for seq in missing:
        with pytest.raises(StateError):
            registry.versions_of(np.array([seq]))


def test_the_directory_takes_little_however_far_seqs_lie_apart() -> None:
    sizes = []
    for distance in (1, 10**12):
        registry = Registry.create()
        for part in np.array_split(distance * np.arange(5_000), 5):
            registry.apply(part, np.ones(len(part), np.bool_), pa.repeat("an id", len(part)))
        sizes.append(registry.n_bytes)
    assert sizes[1] <= sizes[0] + 10_000
