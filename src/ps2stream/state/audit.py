"""The audit log: a file for each batch that an adjustment was made before.

Like the batch it belongs to, a record that is written again is the same file; and one that was written
for a batch which, after a crash, did without the adjustment is removed.
"""

from __future__ import annotations

from pathlib import Path

from ps2stream.balance.adjustments import Adjustment, from_json, to_json
from ps2stream.errors import StateError
from ps2stream.files import whole_file


class AuditLog:
    """Write and read the records of adjustments."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, batch_id: int, record: Adjustment | None) -> None:
        """Keep the record of a batch, or the fact that nothing was adjusted before it."""
        path = self._directory / f"batch-{batch_id:012}.json"
        if record is None:
            path.unlink(missing_ok=True)
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(to_json(record).encode())

    def read(self) -> list[Adjustment]:
        """Return all records in the order of their batches."""
        records = []
        for path in sorted(self._directory.glob("batch-*.json")):
            try:
                records.append(from_json(path.read_text()))
            except (OSError, StateError) as error:
                raise StateError(f"adjustment {path} cannot be read: {error}") from error
        return records
