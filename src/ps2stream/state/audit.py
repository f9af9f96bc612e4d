"""The audit log: a file for each batch that an adjustment was made before.

Like the batch it belongs to, a record that is written again is the same file; and one that was written
for a batch which, after a crash, did without the adjustment is removed. Where drivers of several epochs may
write (``epochs.py``), the record counts that is of the epoch which decided the batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ps2stream.balance.adjustments import Adjustment, adjustment_from_json, adjustment_to_json
from ps2stream.errors import StateError
from ps2stream.store.contract import Store

_NAME = re.compile(r"batch-(\d{12})(?:-(\d{8}))?\.json")


@dataclass(frozen=True, slots=True)
class AuditLog:
    """Write and read the records of adjustments."""

    store: Store
    epoch: int = 0
    epoch_of: Callable[[int], int] = lambda batch_id: 0

    def write(self, batch_id: int, record: Adjustment | None) -> None:
        """Keep the record of a batch, or the fact that nothing was adjusted before it.

        A run before a crash may have left one. Where there are epochs it was of another: each start of a
        job is one, so there is nothing to remove.
        """
        key = f"batch-{batch_id:012}-{self.epoch:08}.json" if self.epoch else f"batch-{batch_id:012}.json"
        if record is None:
            if not self.epoch:
                self.store.delete(key)
        else:
            self.store.put(key, adjustment_to_json(record).encode())

    def read(self) -> list[Adjustment]:
        """Return all records in the order of their batches."""
        return [self._read(key) for key in self.store.list() if self._counts(key)]

    def _counts(self, key: str) -> bool:
        name = _NAME.fullmatch(key)
        return name is not None and int(name[2] or 0) == self.epoch_of(int(name[1]))

    def _read(self, key: str) -> Adjustment:
        try:
            return adjustment_from_json(bytes(self.store.get(key)).decode())
        except (UnicodeDecodeError, StateError) as error:
            raise StateError(f"adjustment {self.store.location(key)} cannot be read: {error}") from error
