"""The merger: matches of all workers in, one ordered set of deliveries out (Sec. III-B)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Int32s, Int64s, Ragged, UInt8s, frozen
from ps2stream.arrow import (
    Spans,
    are_same,
    array_of,
    buffer_for,
    copy_string,
    spans_of,
    string_array,
    views_of,
)
from ps2stream.kernels import kernel
from ps2stream.model.limits import MAX_ID_BYTES
from ps2stream.model.schemas import MATCHES

# Another name: kernels say np.empty, and their fingerprints take it for this global.
from ps2stream.model.schemas import empty as no_rows
from ps2stream.roles.packets import FOUND

#: The most matches of a piece: 256 MiB a column of the longest ids. An Arrow array of strings holds 2 GiB.
MAX_PIECE = 1 << 18
assert MAX_PIECE * MAX_ID_BYTES <= 1 << 28

#: The publications of a batch may have more than 2 GiB of ids.
_FOUND = FOUND.set(1, FOUND.field("publication_id").with_type(pa.large_string()))

_INT64 = pa.int64()

_Flags = npt.NDArray[np.bool_]


class _Runs(NamedTuple):
    """What workers found, a run for each publication and worker; ``order`` puts runs of one together."""

    seq: Int64s  # of the publication
    offsets: Int64s
    subscriptions: Int64s  # ascending within a run
    order: Int64s


class _Publications(NamedTuple):
    """The publications that have matches, in order: a run of each, and how many matches it has."""

    run: Int64s
    n_matches: Int64s


class Naming(Protocol):
    """Name subscriptions by their seqs: the registry does, and so do the names of one worker."""

    def ids(self, seqs: Int64s) -> pa.Array: ...


class Merger:
    """Drop repeats, order by publication and name the subscriptions.

    Workers report every match once; repeats come only from hand-overs of cells and from the
    one hash collision in 2**62 that leads to the same list twice. Several mergers can share the work of a
    batch when all rows of one publication go to the same one.
    """

    def __init__(self, naming: Naming, max_piece: int = MAX_PIECE) -> None:
        self._naming = naming
        self._max_piece = max_piece

    def merge(self, found: Sequence[pa.RecordBatch]) -> pa.Table:
        """Return the deliveries of a batch, ordered by publication seq, then subscription seq."""
        return pa.Table.from_batches(self.pieces(found), schema=MATCHES)

    def pieces(self, found: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the same deliveries in pieces, each made when it is asked for."""
        batch = _joined(found)
        seq, ids, lists = _columns_of(batch)
        runs = _Runs(seq, lists.offsets, lists.values, np.argsort(seq, kind="stable"))
        merged = _merge(runs, ids, False)
        if merged is None:
            # Publications should not share a seq, but if they do, neither may be lost.
            keys = [("publication_seq", "ascending"), ("publication_id", "ascending")]
            order = pc.sort_indices(batch, sort_keys=keys).to_numpy().astype(np.int64)
            merged = _merge(runs._replace(order=order), ids, True)
            assert merged is not None
        return self._named(*merged, seq, ids)

    def in_order(self, found: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give the deliveries of one worker in the order in which it found them.

        Publications may share a seq, and none is found twice.
        """
        seq, ids, lists = _columns_of(_joined(found))
        publications = _Publications(np.arange(len(seq)), np.diff(lists.offsets))
        return self._named(publications, lists.values, seq, ids)

    def _named(
        self, publications: _Publications, subscriptions: Int64s, seq: Int64s, ids: Spans
    ) -> Iterator[pa.RecordBatch]:
        """Give deliveries, with the ids of subscriptions and publications."""
        for some, own in _portions(publications, subscriptions, self._max_piece):
            seqs, offsets, data, n_bytes = _spread(some, seq, ids)
            columns = [
                self._naming.ids(own),
                array_of(own, _INT64),
                string_array(offsets, data, n_bytes),
                array_of(seqs, _INT64),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=MATCHES)


def _joined(found: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(found) == 1:
        return found[0]
    return pa.concat_batches([no_rows(_FOUND), *(each.cast(_FOUND) for each in found)])


def _columns_of(found: pa.RecordBatch) -> tuple[Int64s, Spans, Ragged]:
    seq = frozen(found.column("publication_seq").to_numpy())
    return seq, spans_of(found.column("publication_id")), views_of(found.column("subscription_seqs"))


def _portions(
    publications: _Publications, subscriptions: Int64s, size: int
) -> Iterator[tuple[_Publications, Int64s]]:
    """Cut matches into portions, each with its publications."""
    if len(subscriptions) <= size:
        if len(subscriptions):
            yield publications, subscriptions
        return
    ends = np.cumsum(publications.n_matches)
    for start in range(0, len(subscriptions), size):
        stop = min(start + size, len(subscriptions))
        yield _between(publications, ends, start, stop), subscriptions[start:stop]


def _between(publications: _Publications, ends: Int64s, start: int, stop: int) -> _Publications:
    """Return the publications of some matches; ``ends`` are where the matches of each end."""
    first, last = np.searchsorted(ends, [start, stop - 1], side="right")
    some = slice(first, last + 1)
    begins = ends[some] - publications.n_matches[some]
    return _Publications(publications.run[some], np.minimum(ends[some], stop) - np.maximum(begins, start))


@kernel
def _spread(publications: _Publications, seq: Int64s, ids: Spans) -> tuple[Int64s, Int32s, UInt8s, int]:
    """Repeat seq and id of each publication for all its matches.

    Return seqs, and offsets and bytes of ids, and how many bytes: where they are too many, there are none.
    """
    run, n_matches = publications
    n = n_bytes = 0
    for i in range(len(run)):
        n += n_matches[i]
        n_bytes += n_matches[i] * (ids.offsets[run[i] + 1] - ids.offsets[run[i]])
    seqs, offsets, data = np.empty(n, np.int64), np.zeros(n + 1, np.int32), buffer_for(n_bytes)
    row = at = 0
    for i in range(len(run) if len(data) > 0 else 0):
        start, stop = ids.offsets[run[i]], ids.offsets[run[i] + 1]
        for _ in range(n_matches[i]):
            copy_string(ids.data, start, stop, data, at)
            seqs[row] = seq[run[i]]
            at += stop - start
            row += 1
            offsets[row] = at
    return seqs, offsets, data, n_bytes


@kernel
def _mark_first(seq: Int64s, ids: Spans, order: Int64s, is_first: _Flags) -> bool:
    """Mark where another publication begins; return False if two of them share a seq."""
    is_plain = True
    for position in range(len(order)):
        is_first[position] = True
        if position > 0 and seq[order[position]] == seq[order[position - 1]]:
            is_first[position] = not are_same(ids, order[position], order[position - 1])
            is_plain &= not is_first[position]
    return is_plain


@kernel
def _merge(runs: _Runs, ids: Spans, may_share: bool) -> tuple[_Publications, Int64s] | None:
    """Merge the runs of each publication; None if publications share a seq and may not."""
    is_first = np.empty(len(runs.order), np.bool_)
    if not _mark_first(runs.seq, ids, runs.order, is_first) and not may_share:
        return None
    publications = _Publications(np.empty(len(runs.seq), np.int64), np.empty(len(runs.seq), np.int64))
    merged = np.empty(len(runs.subscriptions), np.int64)
    heads = runs.offsets[:-1].copy()
    n_publications = n_matches = start = 0
    while start < len(runs.order):
        stop = start + 1
        while stop < len(runs.order) and not is_first[stop]:
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
    some = _Publications(publications.run[:n_publications], publications.n_matches[:n_publications])
    return some, merged[:n_matches]


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
