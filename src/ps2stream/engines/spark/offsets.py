"""Which range of a journal a batch is of, by what Spark has written down before the batch began.

Spark fixes the end of a batch in ``checkpoint/offsets/N`` before anybody sees the batch, and reads it there
again when the batch has to be repeated. Read from the same file, the range is known without a job that asks
the source for it, which took longer than small batches take to match.
"""

from __future__ import annotations

import json
from pathlib import Path

from ps2stream.errors import StateError
from ps2stream.journal import Journal


def batch_range(checkpoint: Path, batch_id: int, journal: Path) -> tuple[int, int]:
    """Return the positions ``(after, upto]`` of a batch that Spark has begun."""
    upto = _end_of(checkpoint, batch_id)
    if batch_id:
        return _end_of(checkpoint, batch_id - 1), upto
    # As the source tells Spark where to begin; nothing is pruned before the first batch is committed.
    with Journal.open(journal) as opened:
        return opened.oldest() - 1, upto


def _end_of(checkpoint: Path, batch_id: int) -> int:
    """Read where a batch ends: a version, Spark's own notes, then a line for the one source there is."""
    path = checkpoint / "offsets" / str(batch_id)
    try:
        version, _, offset = path.read_text().splitlines()
        if version == "v2":  # puts the name of the source before its offset
            offset = offset.partition(":")[2]
        return int(json.loads(offset)["position"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StateError(f"{path} must tell where batch {batch_id} ends: {error}") from error
