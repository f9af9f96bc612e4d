"""The worker: packets of publications in, matches out (Sec. III-B, IV-D)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.arrays import frozen
from ps2stream.matching.index import GI2
from ps2stream.matching.layout import FOREVER, Probes
from ps2stream.pipeline.packets import FOUND
from ps2stream.registry.segments import ragged_of, rows_of, subscriptions_of


class Worker:
    """Keep one part of the subscriptions and match publications with it."""

    def __init__(self, worker_id: int, index: GI2) -> None:
        self.worker_id = worker_id
        self.index = index
        self.n_updates = 0

    def update(self, segment: pa.RecordBatch) -> None:
        """Apply what the registrar decided, as far as it concerns this worker.

        All updates of a batch come before its publications. That the seq decides what a
        publication sees makes this right, and applying a segment twice harmless.
        """
        rows = rows_of(segment, self.worker_id)
        if not len(rows):
            return
        subscriptions = subscriptions_of(segment)
        begins = subscriptions.seq_to[rows] == FOREVER
        self.index.insert(subscriptions, frozen(rows[begins]))
        ends = rows[~begins]
        self.index.end(frozen(subscriptions.seq_from[ends]), frozen(subscriptions.seq_to[ends]))
        self.n_updates += len(rows)

    def match(self, packet: pa.RecordBatch, horizon: int) -> pa.RecordBatch:
        """Find the matches of a packet of publications.

        ``horizon``: below it no publication will come any more, not even in a replay.
        """
        terms, probes = ragged_of(packet.column("terms")), ragged_of(packet.column("probes"))
        seq = packet.column("seq").to_numpy()
        found = self.index.probe(
            Probes(
                frozen(seq),
                frozen(packet.column("lon").to_numpy()),
                frozen(packet.column("lat").to_numpy()),
                frozen(terms.offsets),
                frozen(terms.values),
                frozen(probes.values.view(np.bool_)),
            ),
            horizon,
        )
        rows = found.publication
        ids = packet.column("id").take(pa.array(rows))
        return pa.RecordBatch.from_arrays(
            [pa.array(seq[rows]), ids, pa.array(found.subscription)], schema=FOUND
        )
