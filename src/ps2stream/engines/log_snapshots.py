"""When a snapshot replaces the log of a job, and who writes it: the batch that finds it due, or a thread.

What a snapshot is made of does not change any more: the segments since the last one, which are kept here, the
seqs of what lives, and plans (``roles/living.py``). These are taken between two batches. To join thousands of
small segments, to write what lives and to remove what it stands for takes as long as dozens of batches, so it
is done beside them. A crash leaves the same as that of a snapshot which all wait for: the file has its name
or not, and what it covers goes after that. Segments that come meanwhile are later than it, and stay.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future

import pyarrow as pa

from ps2stream.model.schemas import empty
from ps2stream.registry.segments import SEGMENT
from ps2stream.roles.registrar import Registrar
from ps2stream.state.state import State

#: How many segments the log may gather, and how many live subscriptions, which a snapshot has to write, make
#: up for one more: then snapshots take some 0.1 ms of each batch.
_MOST_SEGMENTS = 2_000
_LIVE_PER_SEGMENT = 50


class LogSnapshots:
    """Take snapshots of the log of a state, one at a time.

    ``every``: after this many updates, or as many as there are subscriptions. ``beside``: where they
    are written while batches go on; without it, and where the log has a manifest, which has one writer, all
    wait for them.
    """

    def __init__(self, state: State, every: int, beside: Executor | None = None) -> None:
        self._state, self._every = state, every
        self._beside = None if state.epoch else beside
        since = [segment for _, segment in state.log.read(after=state.log.base())]
        self._n_updates, self._n_segments = sum(segment.num_rows for segment in since), len(since)
        # Joined: as they are they would keep thousands of files mapped.
        self._since = [pa.concat_batches([empty(SEGMENT), *since])] if self._beside else []
        self._writing: Future[None] | None = None

    def add(self, segment: pa.RecordBatch, n_updates: int) -> None:
        """Take notice of a segment that is in the log, and of how many updates it comes from."""
        self._n_updates += n_updates
        self._n_segments += 1
        if self._beside:
            self._since.append(segment)

    def is_due(self, n_live: int) -> bool:
        """Say whether the log has become long, and no snapshot is being written."""
        if self._writing is not None:
            return False
        is_long = self._n_updates > max(self._every, n_live)
        # Small batches: a log of many small files takes long to read, and a snapshot long to write.
        return is_long or self._n_segments > max(_MOST_SEGMENTS, n_live // _LIVE_PER_SEGMENT)

    def take(self, batch_id: int, registrar: Registrar, *, log_is_read: bool) -> None:
        """Let a snapshot stand for the log up to the last batch that is decided.

        ``log_is_read``: by those who carry out the next batch, so it has to wait.
        """
        since, self._since = self._since, []
        self._n_updates = self._n_segments = 0
        if self._beside is None or log_is_read:
            self._state.snapshot(batch_id, registrar)
        else:
            self._writing = self._beside.submit(
                self._state.snapshot_beside, batch_id, registrar.living(), since
            )

    def check(self) -> None:
        """Raise what the last snapshot failed of; do not wait for it."""
        if self._writing is not None and self._writing.done():
            self.finish()

    def finish(self) -> None:
        """Wait for the snapshot that is being written; raise what it fails of, once."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()
