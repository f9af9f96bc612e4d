"""What a job notes of its batches, written when something rests on it.

A note costs two syncs of the disk. That a batch is finished need not be noted before the next one begins, and
a batch that changes nothing begins and is decided in one. What is not noted is done again after a crash, to
the same end, as long as nothing was written that rests on it. So ``settle`` comes before everything that
does: the segment of the log, rejected updates, an adjustment, a snapshot, pruning; and when the stream is
quiet, so that those who look from outside see how far the job is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from ps2stream.roles.worker_host import WorkerHost
from ps2stream.state.ledger import BEFORE_ALL, BatchRange, Ledger, Notes


@dataclass(slots=True)
class BatchNotes:
    """The notes of one job; ``is_lazy``: they are written when they have to be, else at once."""

    ledger: Ledger
    is_lazy: bool = False
    _begun: BatchRange | None = None
    _unchanged: int = BEFORE_ALL
    _finished: tuple[int, int] | None = None
    _newest: tuple[int, int] | None = None  # the last that finished, noted or not
    _spent_s: float = 0.0
    _noted: Notes | None = None  # the file has this: nobody else writes it while the job goes on

    def begin(self, batch: BatchRange) -> None:
        """Settle, or be about to, which events a batch has."""
        self._begun = batch
        self._unless_lazy()

    def decide_unchanged(self, batch_id: int) -> None:
        """Settle for good that a batch changes nothing."""
        self._unchanged = batch_id
        self.settle()

    def finish(self, batch_id: int, last_seq: int) -> None:
        """Note, now or later, that all of a batch is in the sink."""
        self._newest = self._finished = (batch_id, last_seq)
        self._unless_lazy()

    def last_seq(self, batch_id: int) -> int:
        """Return the last seq of the batches up to one, whether it is noted yet or not."""
        if self._newest is not None and self._newest[0] == batch_id:
            return self._newest[1]
        return self.ledger.last_seq(batch_id)

    def settle(self) -> None:
        """Write what is not noted yet."""
        if self._begun is None and self._finished is None and self._unchanged == BEFORE_ALL:
            return
        started = time.monotonic()
        self._noted = self.ledger.note(self._begun, self._unchanged, self._finished, self._noted)
        self._begun, self._unchanged, self._finished = None, BEFORE_ALL, None
        self._spent_s += time.monotonic() - started

    def take_spent_s(self) -> float:
        """Return how long it took to write what was noted since somebody asked last."""
        spent_s, self._spent_s = self._spent_s, 0.0
        return spent_s

    def _unless_lazy(self) -> None:
        if not self.is_lazy:
            self.settle()


@dataclass(frozen=True, slots=True)
class SettledHosts(Sequence[WorkerHost]):
    """Workers that nobody asks anything before all is noted: an index may be compacted when it is opened.

    What the last batch could still see would then be gone, and the batch might run again.
    """

    hosts: Sequence[WorkerHost]
    notes: BatchNotes

    @overload
    def __getitem__(self, key: int) -> WorkerHost: ...

    @overload
    def __getitem__(self, key: slice) -> Sequence[WorkerHost]: ...

    def __getitem__(self, key: int | slice) -> WorkerHost | Sequence[WorkerHost]:
        self.notes.settle()
        return self.hosts[key]

    def __len__(self) -> int:
        return len(self.hosts)
