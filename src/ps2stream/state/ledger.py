"""The ledger: how far a job is. All that says "up to" in a state is said here.

Of each batch two things become true, in this order, and stay true:

    decided    what it begins, ends and moves, and by which plans it is routed, is settled
    finished   its matches and rejected records are in the sink, and its last seq is known

A batch that changes something is decided when the log has its segment; of one that changes nothing there is
a note in ``ledger.json``, beside the last seqs of the newest two batches that are finished. What else counts
batches follows from it: a worker's mark says up to which decided batch its index has the log, and a snapshot
stands for the log up to a decided batch. Spark's offsets say which events a batch has, before all this.

What a crash leaves:

- *Before* ``decide`` returns: the batch is decided or not, never in part. If not, it is decided when it runs
  again, from the same log and the same events, perhaps with another adjustment before it: nobody has seen
  the first.
- *After it*: the batch runs again as it was decided. Workers may apply it as often as they like.
- *Before* ``finish`` returns: the batch runs again and replaces what it wrote by the same. Its horizon, the
  last seq of the batch before, is what it was: that is why two seqs are kept.
- *After it*: the same, unless Spark has noted that the batch is done. So what the batch *before* the newest
  finished one needed is not needed any more (snapshots, pruning, the horizon all rest on that).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from ps2stream.errors import MissingError, StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.registry.log import SubscriptionLog
from ps2stream.routing.routing import PlanNumbers
from ps2stream.store.contract import Store

#: The number of the batch before the first.
BEFORE_ALL = -1
_KEY = "ledger.json"


class _Notes(NamedTuple):
    """What the file says: the last batch that left the log as it was, and last seqs by batch."""

    unchanged: int
    last_seqs: dict[int, int]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The file ``ledger.json`` of a store, and the log beside it; one writer, any number of readers."""

    store: Store
    log: SubscriptionLog

    def decide(self, batch_id: int, segment: pa.RecordBatch | None, routing: PlanNumbers) -> None:
        """Settle a batch for good; without a segment it goes by the log as it is."""
        if segment is not None:
            self.log.append(batch_id, segment, routing)
        else:
            notes = self._read()
            self._write(notes._replace(unchanged=max(notes.unchanged, batch_id)))

    def decided(self) -> int:
        """Return the last batch that is decided, -1 before the first."""
        return max(self.log.last(), self._read().unchanged)

    def check_decided(self, batch_id: int) -> None:
        """Raise unless a batch is decided: what a worker has seen of it must not change any more."""
        decided = self.decided()
        if batch_id > decided:
            raise StateError(
                f"batch {batch_id} must be decided before a worker sees it; "
                f"the state in {self.store.location()} is decided up to batch {decided}"
            )

    def finish(self, batch_id: int, last_seq: int) -> None:
        """Note that all of a batch is in the sink; the seq before it is kept in case the batch runs again."""
        notes = self._read()
        known = {batch_id - 1: _last_seq(notes, batch_id - 1), batch_id: last_seq}
        self._write(notes._replace(last_seqs=known))

    def last_seq(self, batch_id: int | None = None) -> int:
        """Return the last seq of all finished batches, or of those up to one, as far as it is known."""
        return _last_seq(self._read(), batch_id)

    def _read(self) -> _Notes:
        try:
            said = json.loads(bytes(self.store.get(_KEY)))
            last_seqs = {int(batch): int(seq) for batch, seq in said["last_seqs"].items()}
            return _Notes(int(said["unchanged"]), last_seqs)
        except MissingError:
            return _Notes(BEFORE_ALL, {})
        except (StateError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateError(f"{self.store.location(_KEY)} cannot be read: {error!r}") from error

    def _write(self, notes: _Notes) -> None:
        self.store.put(_KEY, json.dumps(notes._asdict()).encode())


def _last_seq(notes: _Notes, batch_id: int | None) -> int:
    known = (seq for batch, seq in notes.last_seqs.items() if batch_id is None or batch <= batch_id)
    return max(known, default=BEFORE_ALL_SEQS)
