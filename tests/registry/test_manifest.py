"""A manifest names the files that count, in few words where batches follow each other."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.errors import StateError
from ps2stream.registry.log import SubscriptionLog
from ps2stream.registry.manifest import BATCH, SNAPSHOT, Manifest
from ps2stream.routing.routing import Routing
from ps2stream.store.memory import MemoryStore


@given(
    st.lists(
        st.tuples(st.sampled_from([BATCH, SNAPSHOT]), st.integers(0, 30), st.integers(1, 3)), max_size=40
    )
)
def test_a_manifest_is_read_as_it_was_written(steps: list[tuple[str, int, int]]) -> None:
    manifest = Manifest()
    for file in steps:
        manifest = manifest.added(file, Routing(file[2]))
        assert Manifest.from_json(manifest.to_json()) == manifest
        assert file in manifest.files
        numbers = [number for _, number, _ in manifest.files]
        assert numbers == sorted(numbers)
        assert sum(kind == SNAPSHOT for kind, _, _ in manifest.files) <= 2


def test_a_snapshot_takes_the_place_of_all_up_to_its_batch() -> None:
    manifest = Manifest()
    for batch_id in range(6):
        manifest = manifest.added((BATCH, batch_id, 1), Routing(1))
    manifest = manifest.added((SNAPSHOT, 2, 2), Routing(1))
    assert manifest.files == ((SNAPSHOT, 2, 2), (BATCH, 3, 1), (BATCH, 4, 1), (BATCH, 5, 1))
    assert (manifest.base, manifest.last) == (2, 5)
    assert (Manifest().base, Manifest().last) == (-1, -1)


def test_many_batches_in_a_row_take_few_bytes() -> None:
    files = tuple((BATCH, number, 1) for number in range(50_000))
    manifest = Manifest(files, Routing(1), {1: 1})
    assert len(manifest.to_json()) < 200
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert len(pickle.dumps(manifest)) < 400
    assert pickle.loads(pickle.dumps(manifest)) == manifest


def test_a_plan_is_of_the_epoch_that_first_named_it_as_long_as_it_is_in_use() -> None:
    manifest = Manifest(plan_epochs={1: 1})
    manifest = manifest.added((BATCH, 0, 2), Routing(1))
    assert manifest.plan_epochs == {1: 1}
    manifest = manifest.added((BATCH, 1, 2), Routing(2, 1, 5))
    assert manifest.plan_epochs == {1: 1, 2: 2}
    manifest = manifest.added((SNAPSHOT, 1, 3), Routing(2))
    assert manifest.plan_epochs == {2: 2}
    assert manifest.routing == Routing(2)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b'{"files": 3}', b"null"])
def test_a_damaged_or_missing_manifest_is_an_error_that_names_it(damage: bytes) -> None:
    store = MemoryStore()
    with pytest.raises(StateError, match=r"manifest-00000002\.json cannot be read"):
        SubscriptionLog(store, 2).last()
    store.put("manifest-00000002.json", damage)
    with pytest.raises(StateError, match=r"manifest-00000002\.json cannot be read"):
        SubscriptionLog(store, 2).last()
