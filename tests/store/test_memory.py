"""A store in memory says in messages where its blobs are, and shares them with its parts."""

from __future__ import annotations

import pytest

from ps2stream.errors import MissingError
from ps2stream.store.memory import MemoryStore


def test_messages_name_the_whole_key() -> None:
    store = MemoryStore().under("state").under("log")
    assert store.location() == "memory:state/log"
    with pytest.raises(MissingError, match="memory:state/log/a is missing"):
        store.get("a")


def test_two_stores_share_nothing() -> None:
    one, other = MemoryStore(), MemoryStore()
    one.put("a", b"one")
    assert other.list() == []
