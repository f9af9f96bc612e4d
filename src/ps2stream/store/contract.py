"""What a store promises: blobs by key, each whole or not there."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

import pyarrow as pa

from ps2stream.errors import StateError


class Store(Protocol):
    """Keep blobs by key.

    A key is a relative name of parts between slashes, such as ``log/batch-7.arrow``; none is the prefix of
    another. Any number of processes may use a store at once: of what several put under one key, one remains.
    """

    def put(self, key: str, data: bytes) -> None:
        """Keep a blob; one of the same key is replaced. On return it has survived."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Keep a blob unless there is one of the same key; return whether this one was kept."""
        ...

    def writer(self, key: str) -> AbstractContextManager[BinaryIO]:
        """Open a blob for writing in pieces; as with :meth:`put`, once the block has ended well.

        A block that fails leaves what was there before.
        """
        ...

    def get(self, key: str) -> pa.Buffer:
        """Return a blob, mapped where that is possible; it stays as it is even if the key is put anew.

        Raises :class:`~ps2stream.errors.MissingError` if there is none.
        """
        ...

    def list(self, prefix: str = "") -> list[str]:
        """Return all keys below a prefix, sorted.

        A prefix is whole parts of a key: ``log`` stands for ``log/a`` and ``log/b/c``, not for ``logs/a``.
        """
        ...

    def delete(self, *keys: str) -> None:
        """Remove blobs, in any order; it is no error if there is none of a key."""
        ...

    def sweep(self) -> None:
        """Remove what killed writers left of keys of one part; call while nobody else writes such keys."""
        ...

    def under(self, prefix: str) -> Store:
        """Return the part of the store whose keys begin with a prefix; its own keys go without it."""
        ...

    def location(self, key: str = "") -> str:
        """Return where a blob, or the store, is: for messages, and for readers with ways of their own."""
        ...


def delete_all(store: Store) -> None:
    """Remove all blobs of a store, or of a part of one."""
    store.delete(*store.list())


#: How the names of files begin and end that are still being written.
STAGED_START, STAGED_END = ".", ".tmp"


def checked(key: str) -> str:
    """Return a key that every store can keep; raise for others, which could lead out of the store."""
    for part in key.split("/"):
        if part in ("", ".", "..") or "\0" in part or "\\" in part:
            raise StateError(
                f"a key must be a relative name of parts between slashes, without '.' and '..'; got {key!r}"
            )
        if part.startswith(STAGED_START) and part.endswith(STAGED_END):
            raise StateError(f"a key must not look like a file that is being written; got {key!r}")
    return key
