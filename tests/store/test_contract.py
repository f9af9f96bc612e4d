"""Every store keeps blobs whole or not at all, whoever else writes at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ps2stream.errors import MissingError, StateError
from ps2stream.store.contract import Store, delete_all


def blob(store: Store, key: str) -> bytes:
    return bytes(store.get(key))


def test_a_new_store_is_empty_and_all_that_only_looks_leaves_it_so(store: Store, tmp_path: Path) -> None:
    assert store.list() == store.list("log") == store.under("log").list() == []
    store.delete("log/a")
    store.sweep()
    with pytest.raises(MissingError, match=r"log/a is missing"):
        store.get("log/a")
    assert list(tmp_path.iterdir()) == []


def test_a_blob_comes_back_as_it_was_put_and_the_last_one_counts(store: Store) -> None:
    for data in (b"one", b"", b"\0" * 100_000, b"two"):
        store.put("a/b.json", data)
        assert blob(store, "a/b.json") == data
    assert store.list() == ["a/b.json"]


def test_a_blob_that_was_got_stays_as_it_is(store: Store) -> None:
    store.put("a", b"one")
    held = store.get("a")
    store.put("a", b"three")
    assert held.to_pybytes() == b"one"
    store.delete("a")
    assert held.to_pybytes() == b"one"


def test_of_those_that_put_if_absent_the_first_one_counts(store: Store) -> None:
    assert store.put_if_absent("a/b", b"one")
    assert not store.put_if_absent("a/b", b"one")
    assert not store.put_if_absent("a/b", b"two")
    assert blob(store, "a/b") == b"one"
    store.delete("a/b")
    assert store.put_if_absent("a/b", b"two")
    store.put("c", b"three")
    assert not store.put_if_absent("c", b"four")
    assert (blob(store, "a/b"), blob(store, "c")) == (b"two", b"three")


def test_keys_are_listed_in_order_by_whole_parts_of_their_prefix(store: Store) -> None:
    for key in ("log/b", "log/a", "logs/c", "log/deep/er", "log-1", "z"):
        store.put(key, b"")
    assert store.list() == ["log-1", "log/a", "log/b", "log/deep/er", "logs/c", "z"]
    assert store.list("log") == ["log/a", "log/b", "log/deep/er"]
    assert store.list("log/deep") == ["log/deep/er"]
    assert store.list("lo") == store.list("z") == store.list("nothing") == []


def test_a_part_of_a_store_has_keys_of_its_own(store: Store) -> None:
    log = store.under("log")
    log.put("a", b"one")
    store.put("log/b", b"two")
    store.put("logs/c", b"three")
    assert log.list() == ["a", "b"]
    assert (blob(log, "b"), blob(store, "log/a")) == (b"two", b"one")
    deep = store.under("x").under("y")
    deep.put("z", b"four")
    assert store.under("x/y").list() == ["z"]
    assert not store.put_if_absent("x/y/z", b"")
    assert store.location("x/y/z") == deep.location("z")
    log.delete("b")
    assert store.list() == ["log/a", "logs/c", "x/y/z"]


def test_deleting_twice_is_as_deleting_once(store: Store) -> None:
    store.put("a", b"one")
    for _ in range(2):
        store.delete("a")
        assert store.list() == []
    with pytest.raises(MissingError, match="a is missing"):
        store.get("a")


def test_many_are_deleted_by_one_call_and_it_does_not_matter_which_are_there(store: Store) -> None:
    for key in ("a", "b/c", "b/d", "e"):
        store.put(key, b"one")
    store.delete("a", "nothing", "b/d", "a")
    assert store.list() == ["b/c", "e"]
    delete_all(store.under("b"))
    delete_all(store.under("b"))
    assert store.list() == ["e"]
    delete_all(store)
    assert store.list() == []


def test_a_blob_written_in_pieces_is_not_there_before_the_last(store: Store) -> None:
    store.put("a", b"old")
    with store.writer("a") as file, store.writer("b") as other:
        file.write(b"new ")
        other.write(b"other")
        assert blob(store, "a") == b"old"
        assert store.list() == ["a"]
        store.sweep()  # what this very process writes is not left behind
        file.write(b"one")
    assert (blob(store, "a"), blob(store, "b")) == (b"new one", b"other")


def test_a_block_that_fails_leaves_what_was_there_before(store: Store) -> None:
    store.put("a", b"old")
    for key in ("a", "b"):
        with pytest.raises(TypeError), store.writer(key) as file:
            file.writelines([b"half of", None])  # type: ignore[list-item]
    assert store.list() == ["a"]
    assert blob(store, "a") == b"old"


@pytest.mark.parametrize(
    "key", ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a/..", "a\\b", "a\0b", "a/.b.9.tmp"]
)
def test_a_key_that_could_lead_elsewhere_is_an_error_for_every_call(store: Store, key: str) -> None:
    for call in (
        lambda: store.put(key, b""),
        lambda: store.put_if_absent(key, b""),
        lambda: store.writer(key).__enter__(),
        lambda: store.get(key),
        lambda: store.delete(key),
        lambda: store.under(key),
        lambda: store.list(key or "/"),  # without one they are of all
        lambda: store.location(key or "/"),
    ):
        with pytest.raises(StateError, match="a key must"):
            call()
    assert store.list() == []


def test_among_many_threads_one_keeps_its_blob(store: Store) -> None:
    with ThreadPoolExecutor(16) as threads:
        for race in range(8):
            kept = list(threads.map(lambda n: store.put_if_absent(f"r/{race}", b"%d" % n), range(16)))  # noqa: B023
            assert sum(kept) == 1
            assert blob(store, f"r/{race}") == b"%d" % kept.index(True)
    assert len(store.list()) == 8


def test_whoever_reads_while_others_write_sees_whole_blobs(store: Store) -> None:
    wholes = [bytes([n]) * 50_000 for n in range(4)]
    store.put("a", wholes[0])
    with ThreadPoolExecutor(5) as threads:
        writing = [threads.submit(store.put, "a", whole) for _ in range(10) for whole in wholes]
        while not all(each.done() for each in writing):
            assert blob(store, "a") in wholes
            assert store.list() == ["a"]
    for each in writing:
        each.result()


_names = st.sampled_from(["a", "b", "c/d", "c/e", "f/g/h"])
_actions = st.lists(
    st.tuples(st.sampled_from(["put", "put_if_absent", "writer", "delete"]), _names, st.binary(max_size=5))
)


@given(_actions)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_store_does_what_a_dictionary_does(store: Store, actions: list[tuple[str, str, bytes]]) -> None:
    for key in store.list():
        store.delete(key)
    like: dict[str, bytes] = {}
    for action, key, data in actions:
        if action == "put":
            store.put(key, data)
            like[key] = data
        elif action == "put_if_absent":
            assert store.put_if_absent(key, data) == (key not in like)
            like.setdefault(key, data)
        elif action == "writer":
            with store.writer(key) as file:
                file.write(data)
            like[key] = data
        else:
            store.delete(key)
            like.pop(key, None)
        assert {each: blob(store, each) for each in store.list()} == like
        assert store.list("c") == sorted(each for each in like if each.startswith("c/"))
