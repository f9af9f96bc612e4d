"""The merger: matches of all workers in, one ordered set of deliveries out (Sec. III-B)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Int32s, Int64s, UInt8s, frozen
from ps2stream.arrow import COPY_MARGIN, Spans, buffer_for, copy_bytes, ragged_of, spans_of, string_array
from ps2stream.kernels import kernel
from ps2stream.model.limits import MAX_ID_BYTES
from ps2stream.model.schemas import MATCHES, empty
from ps2stream.registry.index import Registry
from ps2stream.roles.packets import FOUND

#: The most matches of a piece: 256 MiB a column of the longest ids. An Arrow array of strings holds 2 GiB.
MAX_PIECE = 1 << 18
assert MAX_PIECE * MAX_ID_BYTES <= 1 << 28

#: The publications of a batch may have more than 2 GiB of ids.
_FOUND = FOUND.set(1, FOUND.field("publication_id").with_type(pa.large_string()))

_Flags = npt.NDArray[np.bool_]


class _Runs(NamedTuple):
    """What workers found, a run for each publication and worker; ``order`` puts runs of one together."""

    seq: Int64s  # of the publication
    offsets: Int64s
    subscriptions: Int64s  # ascending within a run
    order: Int64s
    is_first: _Flags  # by position in the order: another publication than the one before


class _Publications(NamedTuple):
    """The publications that have matches, in order: a run of each, and how many matches it has."""

    run: Int64s
    n_matches: Int64s


class Merger:
    """Drop repeats, order by publication and name the subscriptions.

    Workers report every match once; repeats come only from hand-overs of cells and from the
    one hash collision in 2**62 that leads to the same list twice. Several mergers can share the work of a
    batch when all rows of one publication go to the same one.
    """

    def __init__(self, registry: Registry, max_piece: int = MAX_PIECE) -> None:
        self._registry = registry
        self._max_piece = max_piece

    def merge(self, found: Sequence[pa.RecordBatch]) -> pa.Table:
        """Return the deliveries of a batch, ordered by publication seq, then subscription seq."""
        return pa.Table.from_batches(self.pieces(found), schema=MATCHES)

    def pieces(self, found: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the same deliveries in pieces, each made when it is asked for."""
        batch = _joined(found)
        ids = _with_margin(spans_of(batch.column("publication_id")))
        runs = _runs_of(batch, ids)
        publications = _Publications(np.empty(len(runs.seq), np.int64), np.empty(len(runs.seq), np.int64))
        subscriptions = np.empty(len(runs.subscriptions), np.int64)
        n_publications, n_matches = _merge(runs, publications, subscriptions)
        publications = _Publications(*(column[:n_publications] for column in publications))
        ends = np.cumsum(publications.n_matches)
        for start in range(0, n_matches, self._max_piece):
            stop = min(start + self._max_piece, n_matches)
            seqs, names = _spread(_between(publications, ends, start, stop), runs.seq, ids)
            own = subscriptions[start:stop]
            columns = [self._registry.ids(own), pa.array(own), names, pa.array(seqs)]
            yield pa.RecordBatch.from_arrays(columns, schema=MATCHES)

    def in_order(self, found: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the deliveries of one worker in the order in which it found them.

        Publications may share a seq, and none is found twice.
        """
        batch = _joined(found)
        ids = _with_margin(spans_of(batch.column("publication_id")))
        lists, seq = ragged_of(batch.column("subscription_seqs")), batch.column("publication_seq").to_numpy()
        publications = _Publications(np.arange(len(seq)), np.diff(lists.offsets))
        ends = lists.offsets[1:]
        for start in range(0, len(lists.values), self._max_piece):
            stop = min(start + self._max_piece, len(lists.values))
            seqs, names = _spread(_between(publications, ends, start, stop), seq, ids)
            own = lists.values[start:stop]
            columns = [self._registry.ids(own), pa.array(own), names, pa.array(seqs)]
            yield pa.RecordBatch.from_arrays(columns, schema=MATCHES)


def _joined(found: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(found) == 1:
        return found[0]
    return pa.concat_batches([empty(_FOUND), *(each.cast(_FOUND) for each in found)])


def _between(publications: _Publications, ends: Int64s, start: int, stop: int) -> _Publications:
    """Return the publications of some matches; ``ends`` are where the matches of each end."""
    first, last = np.searchsorted(ends, [start, stop - 1], side="right")
    some = slice(first, last + 1)
    begins = ends[some] - publications.n_matches[some]
    return _Publications(publications.run[some], np.minimum(ends[some], stop) - np.maximum(begins, start))


def _runs_of(found: pa.RecordBatch, ids: Spans) -> _Runs:
    seq = found.column("publication_seq").to_numpy()
    lists = ragged_of(found.column("subscription_seqs"))
    order = np.argsort(seq, kind="stable")
    is_first = np.empty(len(order), np.bool_)
    if not _mark_first(frozen(seq), ids, order, is_first):
        # Publications should not share a seq, but if they do, neither may be lost.
        keys = [("publication_seq", "ascending"), ("publication_id", "ascending")]
        order = pc.sort_indices(found, sort_keys=keys).to_numpy().astype(np.int64)
        _mark_first(frozen(seq), ids, order, is_first)
    return _Runs(frozen(seq), frozen(lists.offsets), frozen(lists.values), order, is_first)


def _spread(publications: _Publications, seq: Int64s, ids: Spans) -> tuple[Int64s, pa.Array]:
    """Repeat seq and id of each publication for all its matches; a copy may read beyond the last id."""
    run, n_matches = publications
    n = int(n_matches.sum())
    n_bytes = int(np.dot(ids.offsets[run + 1] - ids.offsets[run], n_matches))
    data, offsets = buffer_for(n_bytes), np.zeros(n + 1, np.int32)
    _repeat(ids, publications, offsets, data)
    return np.repeat(seq[run], n_matches), string_array(offsets, data)


def _with_margin(spans: Spans) -> Spans:
    """Copy spans to where a copy may read beyond the last of them."""
    return Spans(frozen(np.concatenate([spans.data, np.zeros(COPY_MARGIN, np.uint8)])), spans.offsets)


@kernel
def _mark_first(seq: Int64s, ids: Spans, order: Int64s, is_first: _Flags) -> bool:
    """Mark where another publication begins; return False if two of them share a seq."""
    is_plain = True
    for position in range(len(order)):
        is_first[position] = True
        if position > 0 and seq[order[position]] == seq[order[position - 1]]:
            is_first[position] = not _same(ids, order[position], order[position - 1])
            is_plain &= not is_first[position]
    return is_plain


@kernel
def _same(ids: Spans, one: int, other: int) -> bool:
    start, to = ids.offsets[one], ids.offsets[other]
    length = ids.offsets[one + 1] - start
    if ids.offsets[other + 1] - to != length:
        return False
    for i in range(length):
        if ids.data[start + i] != ids.data[to + i]:
            return False
    return True


@kernel
def _merge(runs: _Runs, publications: _Publications, merged: Int64s) -> tuple[int, int]:
    """Merge the runs of each publication; return how many publications and matches there are."""
    heads = runs.offsets[:-1].copy()
    n_publications, n_matches, start = 0, 0, 0
    while start < len(runs.order):
        stop = start + 1
        while stop < len(runs.order) and not runs.is_first[stop]:
            stop += 1
        before = n_matches
        if stop - start == 1:
            n_matches = _append(runs, runs.order[start], merged, n_matches)
        else:
            n_matches = _join(runs, start, stop, heads, merged, n_matches)
        publications.run[n_publications] = runs.order[start]
        publications.n_matches[n_publications] = n_matches - before
        n_publications += 1
        start = stop
    return n_publications, n_matches


@kernel
def _append(runs: _Runs, run: int, merged: Int64s, at: int) -> int:
    """Copy one run without repeats; return where it ends."""
    first = at
    for i in range(runs.offsets[run], runs.offsets[run + 1]):
        if at == first or merged[at - 1] != runs.subscriptions[i]:
            merged[at] = runs.subscriptions[i]
            at += 1
    return at


@kernel
def _join(runs: _Runs, start: int, stop: int, heads: Int64s, merged: Int64s, at: int) -> int:
    """Merge a few runs, always taking the least of their heads; return where that ends."""
    while True:
        least, is_any = np.int64(0), False
        for position in range(start, stop):
            run = runs.order[position]
            if heads[run] < runs.offsets[run + 1]:
                head = runs.subscriptions[heads[run]]
                if not is_any or head < least:
                    least, is_any = head, True
        if not is_any:
            return at
        merged[at] = least
        at += 1
        for position in range(start, stop):
            run = runs.order[position]
            while heads[run] < runs.offsets[run + 1] and runs.subscriptions[heads[run]] == least:
                heads[run] += 1


@kernel
def _repeat(ids: Spans, publications: _Publications, offsets: Int32s, data: UInt8s) -> None:
    """Write the id of each publication as often as it has matches."""
    row, at = 0, 0
    for i in range(len(publications.run)):
        start, stop = ids.offsets[publications.run[i]], ids.offsets[publications.run[i] + 1]
        for _ in range(publications.n_matches[i]):
            copy_bytes(ids.data, start, stop, data, at)
            at += stop - start
            row += 1
            offsets[row] = at
