"""A GI2 that is compacted a piece at a time, so that no publication waits for it.

To compact an index of a million subscriptions takes a fifth of a second. Here that is a hundred pieces, which
its owner does when it likes; the index goes on meanwhile. What changes it until the copy is done is made
again on the copy: every change may be made twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ps2stream.arrays import HeapStorage, Int64s, Storage
from ps2stream.matching.contract import IndexSettings, Subscriptions
from ps2stream.matching.copying import take_counters
from ps2stream.matching.index import GI2
from ps2stream.matching.layout import GI2Arrays

#: Records, or slots of a table, that a piece goes over: one or two milliseconds.
_AT_ONCE = 1 << 15
#: Subscriptions whose changes a piece makes again.
_CHANGED_AT_ONCE = 1000
#: Longer than any list: none is divided while there is a copy on the way.
_NEVER = 1 << 62


class _Change(NamedTuple):
    n_subscriptions: int
    make: Callable[[GI2], object]


class SteadyGI2(GI2):
    """A GI2 on the heap that may be compacted while it is used; one writer, who does the pieces too."""

    def __init__(self, settings: IndexSettings, storage: Storage, arrays: GI2Arrays) -> None:
        super().__init__(settings, storage, arrays)
        assert isinstance(storage, HeapStorage), "a copy of mapped arrays needs files of its own"
        self._pieces: Iterator[None] | None = None
        self._changes: deque[_Change] = deque()
        self._n_changed = 0  # since the last piece

    @property
    def is_compacting(self) -> bool:
        return self._pieces is not None

    def begin_compaction(self, horizon: int, at_once: int = _AT_ONCE) -> None:
        """Begin to leave out what ended at or before a seq."""
        self._limits = self.settings.max_cells, _NEVER
        self._pieces = self._compaction(horizon, at_once)
        self.go_on_compacting()

    def go_on_compacting(self) -> None:
        """Do the next piece of a compaction, if there is one."""
        if self._pieces is not None and next(self._pieces, self) is self:
            self._pieces = None

    def insert(self, subs: Subscriptions, rows: Int64s | None = None) -> None:
        super().insert(subs, rows)
        self._note(len(subs.seq_from) if rows is None else len(rows), lambda copy: copy.insert(subs, rows))

    def end(self, seq_from: Int64s, seq_to: Int64s) -> int:
        n_found = super().end(seq_from, seq_to)
        self._note(len(seq_from), lambda copy: copy.end(seq_from, seq_to))
        return n_found

    def drop(self, seq_from: Int64s) -> int:
        n_found = super().drop(seq_from)
        self._note(len(seq_from), lambda copy: copy.drop(seq_from))
        return n_found

    def _note(self, n: int, make: Callable[[GI2], object]) -> None:
        if self._pieces is not None and n:
            self._changes.append(_Change(n, make))
            self._n_changed += n

    def _compaction(self, horizon: int, at_once: int) -> Iterator[None]:
        arrays = yield from self._copied(horizon, self._storage, at_once)
        copy = GI2(self.settings, self._storage, arrays)
        while self._changes:
            # More than have come since: it ends, however many come.
            n = max(_CHANGED_AT_ONCE, 2 * self._n_changed)
            self._n_changed = 0
            while self._changes and n > 0:
                change = self._changes.popleft()
                change.make(copy)
                n -= change.n_subscriptions
            if self._changes:
                yield
        take_counters(copy._arrays, self._arrays)
        self._arrays = copy._arrays
        self._limits = copy._limits
