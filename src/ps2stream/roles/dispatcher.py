"""The dispatcher: publications in, packets for workers out (Sec. III-B, IV-C)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int32s, Int64s, Ragged, UInt8s, UInt64s, frozen
from ps2stream.arrow import (
    Spans,
    array_of,
    large_lists,
    lists_of,
    raw_spans_of,
    string_array,
    take_strings,
)
from ps2stream.kernels import kernel
from ps2stream.model.events import Publications, check_publications

# Another name: kernels say np.empty, and their fingerprints take it for this global.
from ps2stream.model.schemas import empty as no_rows
from ps2stream.roles.packets import ROUTED, SAMPLED
from ps2stream.routing.index import GridT, Routed, asked_by, route_by
from ps2stream.routing.routing import Routing
from ps2stream.text.tokenizer import Tokenizer, seal, seal_marked

#: At most this many publications of one dispatch go into the sample.
_SAMPLE = 500
_INT64, _FLOAT64 = pa.int64(), pa.float64()
_TERMS, _PROBES = ROUTED.field("terms").type, ROUTED.field("probes").type


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
        written = self._tokenizer.cut(publications.texts)
        # Sorting is what costs most: only terms of publications that somebody may wait for are sorted.
        terms = _frozen(seal_marked(written, asked_by(self._grid_ts, written)))
        routed = route_by(self._grid_ts, publications.lon, publications.lat, terms)
        packets = {
            worker: packet
            for worker, packet in enumerate(packets_of(publications, terms, routed))
            if packet.num_rows
        }
        sampled = _sampled(publications, written) if with_sample else no_rows(SAMPLED)
        return Dispatched(packets, rejected, len(publications.lon), routed.n_discarded, sampled)


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
    starts = routed.rows.offsets.tolist()
    if not len(rows):
        return [no_rows(ROUTED)] * (len(starts) - 1)
    numbers = frozen(publications.seq), frozen(publications.lon), frozen(publications.lat)
    gathered = _gather(numbers, raw_spans_of(publications.ids), terms, routed.owners, routed.rows)
    columns = [
        array_of(gathered.seq, _INT64),
        string_array(*gathered.ids),
        array_of(gathered.lon, _FLOAT64),
        array_of(gathered.lat, _FLOAT64),
        lists_of(_TERMS, gathered.offsets, array_of(gathered.terms, _TERMS.value_type)),
        lists_of(_PROBES, gathered.offsets, array_of(gathered.probes, _PROBES.value_type)),
    ]
    together = pa.RecordBatch.from_arrays(columns, schema=ROUTED)
    return [together.slice(start, stop - start) for start, stop in itertools.pairwise(starts)]


class _Gathered(NamedTuple):
    """The columns of packets, of one worker after the other."""

    seq: Int64s
    ids: tuple[Int32s, UInt8s, int]
    lon: Float64s
    lat: Float64s
    offsets: Int64s
    terms: UInt64s
    probes: UInt8s


@kernel
def _gather(
    numbers: tuple[Int64s, Float64s, Float64s], ids: Spans, terms: Ragged, owners: Int32s, rows: Ragged
) -> _Gathered:
    seq, lon, lat = numbers
    n, n_terms = len(rows.values), 0
    for row in rows.values:
        n_terms += terms.offsets[row + 1] - terms.offsets[row]
    out = _Gathered(
        np.empty(n, np.int64),
        take_strings(ids, rows.values),
        np.empty(n, np.float64),
        np.empty(n, np.float64),
        np.empty(n + 1, np.int64),
        np.empty(n_terms, np.uint64),
        np.empty(n_terms, np.uint8),
    )
    at = 0
    for worker in range(len(rows.offsets) - 1):
        for i in range(rows.offsets[worker], rows.offsets[worker + 1]):
            row = rows.values[i]
            out.seq[i], out.lon[i], out.lat[i], out.offsets[i] = seq[row], lon[row], lat[row], at
            at = _mark_owned(terms, row, owners, worker, out, at)
    out.offsets[n] = at
    return out


@kernel
def _mark_owned(terms: Ragged, row: int, owners: Int32s, worker: int, out: _Gathered, at: int) -> int:
    """Copy the terms of a publication, and mark those that a worker owns; return where they end."""
    for i in range(terms.offsets[row], terms.offsets[row + 1]):
        out.terms[at] = terms.values[i]
        bits = 0
        for version in range(len(owners)):
            bits |= int(owners[version, i] == worker) << version
        out.probes[at] = bits
        at += 1
    return at
