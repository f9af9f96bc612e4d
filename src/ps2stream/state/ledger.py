"""The ledger: how far a job is. All that says "up to" in a state is said here.

Of each batch three things become true, in this order, and stay true:

    begun      which events it has is settled: a range of its feed, such as a journal
    decided    what it begins, ends and moves, and by which plans it is routed, is settled
    finished   its matches and rejected records are in the sink, and its last seq is known

A batch that changes something is decided when the log has its segment; of one that changes nothing there is
a note in ``ledger.json``, beside the range of the newest batch and the last seqs of the newest two that are
finished. What else counts batches follows from it: a worker's mark says up to which decided batch its index
has the log, and a snapshot stands for the log up to a decided batch. For a DataFrame of a user's own, Spark's
checkpoint says which events a batch has, and has the last word on whether it is done.

What a crash leaves:

- *Before* ``begin`` returns: the batch has its range or not, never another one.
- *After it*, before ``decide`` returns: the batch is decided or not, never in part. If not, it is decided
  when it runs again, from the same log and the same events, perhaps with another adjustment before it: nobody
  has seen the first.
- *After that*: the batch runs again as it was decided. Workers may apply it as often as they like.
- *Before* ``finish`` returns: the batch runs again and replaces what it wrote by the same. Its horizon, the
  last seq of the batch before, is what it was: that is why two seqs are kept.
- *After it*: a batch of a journal never runs again. One of a user's DataFrame does, unless Spark has noted
  that it is done. So of both kinds, what the batch *before* the newest finished one needed is not needed any
  more (snapshots, pruning, the horizon all rest on that).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ps2stream.errors import MissingError, StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.registry.log import SubscriptionLog
from ps2stream.routing.routing import PlanNumbers
from ps2stream.sources.feed import Offsets
from ps2stream.store.contract import Store

#: The number of the batch before the first.
BEFORE_ALL = -1
_KEY = "ledger.json"
#: This many of the newest epochs are remembered.
_MOST_EPOCHS = 1_000


class BatchRange(NamedTuple):
    """Which events a batch has: those of its feed from one place to another (``sources/feed.py``)."""

    batch_id: int
    after: Offsets
    upto: Offsets


class Notes(NamedTuple):
    """What the file says: the last batch that left the log as it was, last seqs by batch, a range.

    ``epochs``: those that began, and the batch that was decided last when each did. ``feed``: whose events
    they are.
    """

    unchanged: int
    last_seqs: dict[int, int]
    begun: BatchRange | None
    epochs: tuple[tuple[int, int], ...] = ()
    feed: str | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The file ``ledger.json`` of a store, and the log beside it; one writer, any number of readers.

    Each epoch but 0 has a file of its own (``epochs.py``). ``known``: a batch that is decided for sure, where
    a task was told so by the driver that decided it.
    """

    store: Store
    log: SubscriptionLog
    epoch: int = 0
    known: int = BEFORE_ALL

    def bind(self, feed: str) -> None:
        """Note whose events the batches have; raise if those before had another's.

        Places of one feed say nothing of another: a journal that was removed and made anew would lose its
        first events, or have some of them twice.
        """
        notes = self._read()
        if notes.feed is None:
            self._write(notes._replace(feed=feed))
        elif notes.feed != feed:
            raise StateError(
                f"the state in {self.store.location()} belongs to the events of {notes.feed}; got {feed}. "
                "Use the same journal or topics, or another state"
            )

    def begin(self, batch: BatchRange) -> None:
        """Settle which events a batch has."""
        self.note(begun=batch)

    def note(
        self,
        begun: BatchRange | None = None,
        unchanged: int = BEFORE_ALL,
        finished: tuple[int, int] | None = None,
        known: Notes | None = None,
    ) -> Notes:
        """Note several things at once: a batch that begins, one that changes nothing, one that is finished.

        ``finished``: a batch and its last seq. ``known``: what this returned the last time, where nobody else
        has noted anything since. All of it is there on return, or none of it is after a crash.
        """
        notes = known or self._read()
        if finished is not None:
            batch_id, last_seq = finished
            last_seqs = {batch_id - 1: _last_seq(notes, batch_id - 1), batch_id: last_seq}
            notes = notes._replace(last_seqs=last_seqs)
        notes = notes._replace(begun=begun or notes.begun, unchanged=max(notes.unchanged, unchanged))
        self._write(notes)
        return notes

    def begun(self) -> BatchRange | None:
        """Return the newest batch that has begun; None before the first."""
        return self._read().begun

    def decide(self, batch_id: int, segment: pa.RecordBatch | None, routing: PlanNumbers) -> None:
        """Settle a batch for good; without a segment it goes by the log as it is."""
        if segment is not None:
            self.log.append(batch_id, segment, routing)
        else:
            self.note(unchanged=batch_id)

    def decided(self) -> int:
        """Return the last batch that is decided, -1 before the first."""
        return max(self.log.last(), self._read().unchanged)

    def check_decided(self, batch_id: int) -> None:
        """Raise unless a batch is decided: what a worker has seen of it must not change any more.

        Only a look-up: decided is for good, so whoever was told it need not ask the store.
        """
        if batch_id <= self.known:
            return
        decided = self.decided()
        if batch_id > decided:
            raise StateError(
                f"batch {batch_id} must be decided before a worker sees it; "
                f"the state in {self.store.location()} is decided up to batch {decided}"
            )

    def check_newest(self, batch_id: int) -> None:
        """Raise if an index may lack by now what this batch could still see: a later one is decided.

        A task that Spark gave up on may go on, and end when its batch has long been done. Call it after
        matching: an index that had seen a later batch, or a snapshot, is told by it for sure. What was known
        when the task began is of no use here: this has to be read from the store.
        """
        base, last = self.log.span()
        decided = max(last, self._read().unchanged)
        if decided > batch_id or base >= batch_id:
            raise StateError(
                f"batch {batch_id} is over: the state in {self.store.location()} "
                f"is decided up to batch {decided}"
            )

    def finish(self, batch_id: int, last_seq: int) -> None:
        """Note that all of a batch is in the sink; the seq before it is kept in case the batch runs again."""
        self.note(finished=(batch_id, last_seq))

    def finished(self) -> int:
        """Return the last batch that is finished, -1 before the first."""
        return max(self._read().last_seqs, default=BEFORE_ALL)

    def done(self) -> Offsets | None:
        """Return the place in the feed up to which all is in the sink; None before the first batch began."""
        notes = self._read()
        if notes.begun is None:
            return None
        is_finished = notes.begun.batch_id in notes.last_seqs
        return notes.begun.upto if is_finished else notes.begun.after

    def last_seq(self, batch_id: int | None = None) -> int:
        """Return the last seq of all finished batches, or of those up to one, as far as it is known."""
        return _last_seq(self._read(), batch_id)

    def take_over(self, before: Ledger, last_in_log: int) -> None:
        """Begin as the ledger of an earlier epoch stands now, with a log that goes up to a batch."""
        notes = before._read()
        epochs = (*notes.epochs, (self.epoch, max(last_in_log, notes.unchanged)))
        self._write(notes._replace(epochs=epochs[-_MOST_EPOCHS:]))

    def epoch_of(self, batch_id: int) -> int:
        """Return the epoch whose driver decided a batch, as far back as is known."""
        return max((epoch for epoch, decided in self._read().epochs if decided < batch_id), default=0)

    @property
    def _key(self) -> str:
        return f"ledger-{self.epoch:08}.json" if self.epoch else _KEY

    def _read(self) -> Notes:
        try:
            said = json.loads(bytes(self.store.get(self._key)))
            last_seqs = {int(batch): int(seq) for batch, seq in said["last_seqs"].items()}
            epochs = tuple((int(epoch), int(decided)) for epoch, decided in said.get("epochs", ()))
            return Notes(int(said["unchanged"]), last_seqs, _begun(said["begun"]), epochs, said.get("feed"))
        except MissingError:
            return Notes(BEFORE_ALL, {}, None)
        except (StateError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateError(f"{self.store.location(self._key)} cannot be read: {error!r}") from error

    def _write(self, notes: Notes) -> None:
        self.store.put(self._key, json.dumps(notes._asdict()).encode())


def _begun(said: list[Any] | None) -> BatchRange | None:
    if said is None:
        return None
    batch_id, *places = said
    # Earlier versions knew journals only, and wrote a position as a number.
    after, upto = ((place,) if isinstance(place, int) else tuple(map(int, place)) for place in places)
    return BatchRange(int(batch_id), after, upto)


def _last_seq(notes: Notes, batch_id: int | None) -> int:
    known = (seq for batch, seq in notes.last_seqs.items() if batch_id is None or batch <= batch_id)
    return max(known, default=BEFORE_ALL_SEQS)
