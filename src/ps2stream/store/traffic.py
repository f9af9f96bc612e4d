"""What this process has asked of object stores: requests by kind, and the bytes of blobs.

Counted where requests are made (``object_store.py``), so that all is in it, whoever asks: state, spool, sink,
lease. A request that the client tries again by itself counts once, as do an upload in parts, a listing in
pages and a delete of many objects: what goes on inside the client cannot be seen. A directory has no
requests.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests, and bytes of blobs that came from stores (``bytes_in``) and went to them (``bytes_out``)."""

    gets: int = 0
    puts: int = 0
    lists: int = 0
    deletes: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(mine + its for mine, its in zip(self._counts, other._counts, strict=True)))

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(*(mine - its for mine, its in zip(self._counts, other._counts, strict=True)))

    @property
    def requests(self) -> int:
        return self.gets + self.puts + self.lists + self.deletes

    @property
    def _counts(self) -> tuple[int, ...]:
        # Not ``astuple``, which copies deeply: batches of a few events notice it.
        return self.gets, self.puts, self.lists, self.deletes, self.bytes_in, self.bytes_out


NO_TRAFFIC = Traffic()


class _Counter:
    """The counts of one process; any thread adds to them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.so_far = NO_TRAFFIC

    def add(self, made: Traffic) -> None:
        with self._lock:
            self.so_far += made


_counter = _Counter()


def count(made: Traffic) -> None:
    """Add requests that were made to those of this process."""
    _counter.add(made)


def traffic_so_far() -> Traffic:
    """Return all traffic of this process; who wants that of a while takes the difference."""
    return _counter.so_far
