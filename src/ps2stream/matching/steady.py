"""A GI2 that is compacted a piece at a time, so that no publication waits for it.

To compact an index of a million subscriptions takes a fifth of a second. Here that is a hundred pieces, which
its owner does when it likes; the index goes on meanwhile. What changes it until the copy is done is made
again on the copy: every change may be made twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import HeapStorage, Int64s, Storage, frozen
from ps2stream.matching.contract import IndexSettings, Subscriptions
from ps2stream.matching.copying import take_counters
from ps2stream.matching.index import GI2
from ps2stream.matching.layout import GI2Arrays

#: Records, or slots of a table, that a piece goes over: one or two milliseconds.
_AT_ONCE = 1 << 15
#: Subscriptions whose changes a piece makes again; of more pieces than this twice as many, and so on: it
#: ends, however many come.
_CHANGED_AT_ONCE = 1000
_PATIENCE = 16
#: Longer than any list: none is divided while there is a copy on the way.
_NEVER = 1 << 62


class _Change(NamedTuple):
    """A change of some of the rows that came with it."""

    make: Callable[[GI2, slice], object]
    rows: slice


class SteadyGI2(GI2):
    """A GI2 on the heap that may be compacted while it is used; one writer, who does the pieces too."""

    def __init__(self, settings: IndexSettings, storage: Storage, arrays: GI2Arrays) -> None:
        super().__init__(settings, storage, arrays)
        assert isinstance(storage, HeapStorage), "a copy of mapped arrays needs files of its own"
        self._pieces: Iterator[None] | None = None
        self._changes: deque[_Change] = deque()

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
        if self.is_compacting:
            chosen = np.arange(len(subs.seq_from)) if rows is None else rows
            # The copy may have left out what is still stored here: to insert that again changes nothing.
            new = frozen(chosen[~self._are_stored(frozen(subs.seq_from[chosen]))])
            self._note(len(new), lambda copy, some: copy.insert(subs, new[some]))
        super().insert(subs, rows)

    def end(self, seq_from: Int64s, seq_to: Int64s) -> int:
        self._note(len(seq_from), lambda copy, some: copy.end(seq_from[some], seq_to[some]))
        return super().end(seq_from, seq_to)

    def drop(self, seq_from: Int64s) -> int:
        self._note(len(seq_from), lambda copy, some: copy.drop(seq_from[some]))
        return super().drop(seq_from)

    def _note(self, n: int, make: Callable[[GI2, slice], object]) -> None:
        if self.is_compacting:
            firsts = range(0, n, _CHANGED_AT_ONCE)
            self._changes.extend(
                _Change(make, slice(each, min(each + _CHANGED_AT_ONCE, n))) for each in firsts
            )

    def _compaction(self, horizon: int, at_once: int) -> Iterator[None]:
        arrays = yield from self._copied(horizon, self._storage, at_once)
        copy = GI2(self.settings, self._storage, arrays)
        n_pieces = 0
        while self._changes:
            n = _CHANGED_AT_ONCE << n_pieces // _PATIENCE
            while self._changes and n > 0:
                make, rows = self._changes.popleft()
                make(copy, rows)
                n -= rows.stop - rows.start
            n_pieces += 1
            if self._changes:
                yield
        take_counters(copy._arrays, self._arrays)
        self._arrays = copy._arrays
        self._limits = copy._limits
