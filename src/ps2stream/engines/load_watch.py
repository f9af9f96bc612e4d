"""What batches show of the loads, gathered until it is worth telling.

To look at all cells of all workers costs more than a small batch does. So an engine of small batches looks
now and then, and what it sees then is what came of all batches since it looked last.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pyarrow as pa

from ps2stream.adjusting.controller import Observed


@dataclass(slots=True)
class LoadWatch:
    """Add up batches; every ``every_s`` seconds one of them is due to be told with those before it."""

    every_s: float = 0.0
    _next: float = 0.0
    _n_publications: int = 0
    _n_updates: int = 0
    _busy_s: dict[int, float] = field(default_factory=dict)
    _sampled: list[pa.RecordBatch] = field(default_factory=list)

    def is_due(self) -> bool:
        """Say whether the next batch should report the loads of cells."""
        return time.monotonic() >= self._next

    def told(self, batch: Observed, *, with_cells: bool, is_adjusted: bool) -> Observed | None:
        """Take in a batch; return what there is to tell, if it came with the loads of cells.

        ``is_adjusted``: the routing is another than that of the batches before. What has gathered of those
        says nothing any more, and neither do cells in which their work is counted, too.
        """
        has_gathered = bool(self._n_publications or self._n_updates)
        if is_adjusted and has_gathered:
            self._clear()
            if with_cells:
                return None
        self._n_publications += batch.n_publications
        self._n_updates += batch.n_updates
        self._sampled += batch.sampled
        for worker, busy_s in batch.busy_s.items():
            self._busy_s[worker] = self._busy_s.get(worker, 0.0) + busy_s
        if not with_cells:
            return None
        observed = Observed(self._n_publications, self._n_updates, batch.cells, self._busy_s, self._sampled)
        self._clear()
        self._next = time.monotonic() + self.every_s
        return observed

    def _clear(self) -> None:
        self._n_publications = self._n_updates = 0
        self._busy_s, self._sampled = {}, []
