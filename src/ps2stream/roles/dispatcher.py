"""The dispatcher: publications in, packets for workers out (Sec. III-B, IV-C)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int32s, Int64s, Ragged, UInt8s, UInt64s, frozen
from ps2stream.arrow import large_lists
from ps2stream.kernels import kernel
from ps2stream.model.events import Publications, check_publications
from ps2stream.model.schemas import empty
from ps2stream.roles.packets import ROUTED, SAMPLED
from ps2stream.routing.index import GridT, Routed, asked_rows, route_by
from ps2stream.routing.routing import Routing
from ps2stream.text.tokenizer import Tokenizer, seal

#: At most this many publications of one dispatch go into the sample.
_SAMPLE = 500


@dataclass(frozen=True, slots=True)
class Dispatched:
    """Packets by worker, what was rejected, what nobody waits for, and a few publications as a sample."""

    packets: dict[int, pa.RecordBatch]
    rejected: pa.RecordBatch
    n_publications: int
    n_discarded: int
    sampled: pa.RecordBatch


class Dispatcher:
    """Tokenise publications and send each to the workers that own one of its live terms."""

    def __init__(self, grid_ts: Routing[GridT], tokenizer: Tokenizer) -> None:
        self._grid_ts = grid_ts
        self._tokenizer = tokenizer

    def dispatch(self, batch: pa.RecordBatch, *, with_sample: bool = True) -> Dispatched:
        """Route publications; a sample of them is taken unless nobody wants it."""
        publications, rejected = check_publications(batch)
        n = len(publications.lon)
        written = self._tokenizer.cut(publications.texts)
        # Sorting is what costs most: only terms of publications that somebody may wait for are sorted.
        rows = asked_rows(self._grid_ts, written)
        asked = _taken(publications, rows)
        terms = _frozen(seal(written, rows))
        routed = route_by(self._grid_ts, asked.lon, asked.lat, terms)
        packets = {
            worker: packet
            for worker, packet in enumerate(packets_of(asked, terms, routed))
            if packet.num_rows
        }
        n_discarded = n - len(rows) + routed.n_discarded
        sampled = _sampled(publications, written) if with_sample else empty(SAMPLED)
        return Dispatched(packets, rejected, n, n_discarded, sampled)


def _taken(publications: Publications, rows: Int64s) -> Publications:
    """Take some publications, without their texts, which nobody needs any more."""
    ids = publications.ids if len(rows) == len(publications.lon) else publications.ids.take(pa.array(rows))
    lon, lat = frozen(publications.lon[rows]), frozen(publications.lat[rows])
    return Publications(publications.seq[rows], ids, lon, lat, publications.texts.slice(0, 0))


def _frozen(terms: Ragged) -> Ragged:
    return Ragged(frozen(terms.values), frozen(terms.offsets))


def _sampled(publications: Publications, written: Ragged) -> pa.RecordBatch:
    """Take publications at equal distances: what load adjustment sees of the recent past."""
    n = len(publications.lon)
    rows = np.arange(0, n, max(1, -(-n // _SAMPLE)))
    terms = seal(written, rows)
    columns = [
        pa.array(publications.lon[rows]),
        pa.array(publications.lat[rows]),
        large_lists(pa.array(terms.values), terms.offsets),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SAMPLED)


def packets_of(publications: Publications, terms: Ragged, routed: Routed) -> list[pa.RecordBatch]:
    """Gather the publications of every worker; all their terms go along, to verify whole clauses.

    Packets are slices of one batch: what is done once a column costs no more for many workers.
    """
    rows = routed.rows.values
    n_terms = int((terms.offsets[rows + 1] - terms.offsets[rows]).sum())
    offsets = np.empty(len(rows) + 1, np.int64)
    values = np.empty(n_terms, np.uint64)
    probes = np.empty(n_terms, np.uint8)
    _gather(terms, routed.owners, routed.rows, (offsets, values, probes))
    columns = [
        pa.array(publications.seq[rows]),
        publications.ids.take(pa.array(rows)),
        pa.array(publications.lon[rows]),
        pa.array(publications.lat[rows]),
        large_lists(pa.array(values), offsets),
        large_lists(pa.array(probes), offsets),
    ]
    together = pa.RecordBatch.from_arrays(columns, schema=ROUTED)
    starts = routed.rows.offsets.tolist()
    return [together.slice(start, stop - start) for start, stop in itertools.pairwise(starts)]


@kernel
def _gather(terms: Ragged, owners: Int32s, rows: Ragged, out: tuple[Int64s, UInt64s, UInt8s]) -> None:
    to_offsets, to_terms, to_probes = out
    at = 0
    for worker in range(len(rows.offsets) - 1):
        for i in range(rows.offsets[worker], rows.offsets[worker + 1]):
            to_offsets[i] = at
            publication = rows.values[i]
            for j in range(terms.offsets[publication], terms.offsets[publication + 1]):
                to_terms[at] = terms.values[j]
                bits = 0
                for version in range(len(owners)):
                    bits |= int(owners[version, j] == worker) << version
                to_probes[at] = bits
                at += 1
    to_offsets[len(rows.values)] = at
