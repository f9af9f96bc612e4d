"""The dispatcher: publications in, packets for workers out (Sec. III-B, IV-C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int32s, Int64s, Ragged, UInt8s, UInt64s, frozen
from ps2stream.kernels import kernel
from ps2stream.model.events import Publications, check_publications
from ps2stream.pipeline.packets import ROUTED, SAMPLED
from ps2stream.registry.segments import large_lists
from ps2stream.routing.index import GridT, Routed, route_by
from ps2stream.text.tokenizer import Tokenizer

#: At most so many publications of one dispatch go into the sample.
_SAMPLE = 500


@dataclass(frozen=True, slots=True)
class Dispatched:
    """Packets by worker, what was turned down, what nobody waits for, and a few publications as a sample."""

    packets: dict[int, pa.RecordBatch]
    rejected: pa.RecordBatch
    n_publications: int
    n_discarded: int
    sampled: pa.RecordBatch


class Dispatcher:
    """Tokenise publications and send each to the workers that own one of its live terms.

    ``versions`` of the routing come newest first; all but the newest are on their way out.
    """

    def __init__(self, versions: Sequence[GridT], tokenizer: Tokenizer) -> None:
        self._versions = versions
        self._tokenizer = tokenizer

    def dispatch(self, batch: pa.RecordBatch) -> Dispatched:
        publications, rejected = check_publications(batch)
        terms = self._tokenizer.tokenize(publications.texts)
        terms = Ragged(frozen(terms.values), frozen(terms.offsets))
        lon, lat = frozen(publications.lon), frozen(publications.lat)
        routed = route_by(self._versions, lon, lat, terms)
        packets = {
            int(worker): packet_of(publications, terms, routed, int(worker))
            for worker in np.flatnonzero(routed.n_publications)
        }
        return Dispatched(packets, rejected, len(lon), routed.n_discarded, _sampled(lon, lat, terms))


def _sampled(lon: Float64s, lat: Float64s, terms: Ragged) -> pa.RecordBatch:
    """Take publications at equal distances: what load adjustment sees of the recent past."""
    rows = np.arange(0, len(lon), max(1, -(-len(lon) // _SAMPLE)))
    lists = large_lists(pa.array(terms.values), terms.offsets)
    columns = [pa.array(lon[rows]), pa.array(lat[rows]), lists.take(pa.array(rows))]
    return pa.RecordBatch.from_arrays(columns, schema=SAMPLED)


def packet_of(publications: Publications, terms: Ragged, routed: Routed, worker: int) -> pa.RecordBatch:
    """Gather the publications of one worker; all their terms go along, to verify whole clauses."""
    rows = routed.rows.row(worker)
    n_terms = int((terms.offsets[rows + 1] - terms.offsets[rows]).sum())
    offsets = np.empty(len(rows) + 1, np.int64)
    values = np.empty(n_terms, np.uint64)
    probes = np.empty(n_terms, np.uint8)
    _gather(terms.offsets, terms.values, routed.owners, worker, rows, (offsets, values, probes))
    taken = pa.array(rows)
    columns = [
        pa.array(publications.seq[rows]),
        publications.ids.take(taken),
        pa.array(publications.lon[rows]),
        pa.array(publications.lat[rows]),
        large_lists(pa.array(values), offsets),
        large_lists(pa.array(probes), offsets),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ROUTED)


@kernel
def _gather(
    offsets: Int64s,
    terms: UInt64s,
    owners: Int32s,
    worker: int,
    rows: Int64s,
    out: tuple[Int64s, UInt64s, UInt8s],
) -> None:
    to_offsets, to_terms, to_probes = out
    at = 0
    for i in range(len(rows)):
        to_offsets[i] = at
        for j in range(offsets[rows[i]], offsets[rows[i] + 1]):
            to_terms[at] = terms[j]
            bits = 0
            for version in range(len(owners)):
                bits |= int(owners[version, j] == worker) << version
            to_probes[at] = bits
            at += 1
    to_offsets[len(rows)] = at
