"""The registry: which subscriptions live, by id and by seq; a thin class around the kernels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.arrays import (
    Flags,
    Float64s,
    HeapStorage,
    Int64s,
    MappedStorage,
    Storage,
    UInt8s,
    create_struct,
    frozen,
    n_bytes,
    open_struct,
)
from ps2stream.arrow import COPY_MARGIN, Spans, spans_of, string_array
from ps2stream.errors import StateError
from ps2stream.matching.contract import FOREVER
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.registry.apply import (
    NO_CAPACITY,
    NO_DIRECTORY,
    OUT_OF_ORDER,
    apply,
    hash_ids,
    most_intervals,
    refill_id_map,
)
from ps2stream.registry.layout import (
    DTYPES,
    INITIAL_SIZES,
    INTERVAL_BITS,
    N_ENDED,
    N_ID_BYTES,
    N_INTERVALS,
    N_POSTINGS,
    N_VERSIONS,
    IdUpdates,
    RegistryArrays,
    Verdicts,
    needed_sizes,
)
from ps2stream.registry.naming import directory_of, extend_directory, find_versions, name_seqs
from ps2stream.registry.versions import Described, Ended, describe, ended_by, postings_of
from ps2stream.routing.layout import Postings


class Registry:
    """Decide what an update does, and name the subscription of a seq; one writer."""

    def __init__(self, storage: Storage, arrays: RegistryArrays) -> None:
        self._storage = storage
        self._arrays = arrays

    @classmethod
    def create(cls, storage: Storage | None = None) -> Registry:
        storage = storage or HeapStorage()
        return cls(storage, create_struct(RegistryArrays, DTYPES, INITIAL_SIZES, storage))

    @classmethod
    def open(cls, storage: MappedStorage, *, shared: bool = False) -> Registry:
        """Map what a registrar wrote: to read it, or ``shared``, to go on writing it."""
        return cls(storage, open_struct(RegistryArrays, DTYPES, storage, needed_sizes, shared=shared))

    @property
    def n_live(self) -> int:
        return int(self._arrays.head[N_VERSIONS] - self._arrays.head[N_ENDED])

    @property
    def n_ended(self) -> int:
        return int(self._arrays.head[N_ENDED])

    @property
    def n_bytes(self) -> int:
        return n_bytes(self._arrays)

    def apply(self, seq: Int64s, is_subscribe: np.ndarray, ids: pa.Array) -> Verdicts:
        """Begin and end versions for updates that are sorted by seq.

        Regions and postings of the new versions follow by :meth:`describe`.
        """
        return self.decide(frozen(seq), frozen(is_subscribe), spans_of(ids))

    def decide(self, seq: Int64s, is_subscribe: Flags, spans: Spans) -> Verdicts:
        """Do the same with arrays that are read-only."""
        hashes = np.empty(len(seq), np.uint64)
        hash_ids(spans.data, spans.offsets, hashes)
        updates = IdUpdates(seq, is_subscribe, spans.offsets, spans.data, hashes)
        first = int(self._arrays.head[N_VERSIONS])
        verdicts = Verdicts(np.empty(len(seq), np.bool_), np.empty(len(seq), np.int64))
        outcome = apply(self._arrays, updates, verdicts)
        if outcome == OUT_OF_ORDER:
            self._refuse(seq[is_subscribe])
        if outcome == NO_CAPACITY:
            self._reserve(first + int(np.count_nonzero(is_subscribe)), len(spans.data))
            outcome = apply(self._arrays, updates, verdicts)
        if outcome == NO_DIRECTORY:
            self._extend_directory(first)
        return verdicts

    def _refuse(self, begun: Int64s) -> None:
        # A log that is out of order would lead the directory astray, and kernels check nothing.
        raise StateError(
            f"subscriptions must begin in the order of their seqs, after {self.newest_seq()}; "
            f"got {len(begun):,} from {begun.min()} to {begun.max()}"
        )

    def _reserve(self, n_versions: int, n_id_bytes: int) -> None:
        self._grow("names", 2 * (n_versions + 1))
        self._grow("seq_to", n_versions)
        self._grow("posting_offsets", n_versions + 1)
        self._grow("bounds", 4 * n_versions)
        self._grow("id_data", int(self._arrays.head[N_ID_BYTES]) + n_id_bytes + COPY_MARGIN)
        self._reserve_map(n_versions)

    def describe(self, postings: Postings) -> None:
        """Add the regions and posting terms of the newest versions, in their order."""
        postings = Postings(*map(frozen, postings))
        while not describe(self._arrays, postings):
            self._grow("posting_terms", int(self._arrays.head[N_POSTINGS]) + len(postings.terms))

    def postings(self, versions: Int64s) -> Postings:
        """Return regions and posting terms of versions, to route their ends as their begins."""
        arrays = self._arrays
        described = Described(arrays.names, arrays.bounds, arrays.posting_offsets, arrays.posting_terms)
        return Postings(*map(frozen, postings_of(described, frozen(versions))))

    def ended_by(self, seq: Int64s, verdicts: Verdicts) -> tuple[Ended, int, int]:
        """List what updates ended; return also the bytes of its ids, and how many updates meant nothing."""
        return ended_by(self._arrays.names, frozen(seq), verdicts)

    @property
    def id_data(self) -> UInt8s:
        """Return the bytes of all ids."""
        return self._arrays.id_data

    def bounds(self, versions: Int64s) -> Float64s:
        """Return the regions of versions, four numbers each."""
        return self._bounds()[versions].reshape(-1)

    def repost(self, seqs: Int64s, postings: Postings) -> None:
        """Replace the posting terms of versions; each has as many as before."""
        arrays = self._arrays
        versions = self.versions_of(seqs)
        starts, counts = arrays.posting_offsets[versions], np.diff(postings.offsets)
        index = np.repeat(starts - postings.offsets[:-1], counts) + np.arange(postings.offsets[-1])
        arrays.posting_terms[index] = postings.terms

    def versions_of(self, seqs: Int64s) -> Int64s:
        """Return the versions of seqs, all of which must be known."""
        versions = np.empty(len(seqs), np.int64)
        if not find_versions(directory_of(self._arrays), frozen(seqs), versions):
            raise _unknown()
        return versions

    def live_versions(self) -> Int64s:
        """Return the versions that nobody has ended, in the order of their seqs."""
        n = int(self._arrays.head[N_VERSIONS])
        return np.flatnonzero(self._arrays.seq_to[:n] == FOREVER)

    def newest_seq(self) -> int:
        """Return the seq of the newest version, or what lies before all seqs."""
        n = int(self._arrays.head[N_VERSIONS])
        return int(self._arrays.names[2 * (n - 1)]) if n else BEFORE_ALL_SEQS

    def seq_from(self, versions: Int64s) -> Int64s:
        seqs: Int64s = self._arrays.names[2 * versions]
        return seqs

    def live_seqs(self) -> Int64s:
        """Return the seqs of the versions that nobody has ended, ascending."""
        return self.seq_from(self.live_versions())

    def ids(self, seqs: Int64s) -> pa.Array:
        """Name the subscriptions of seqs."""
        named = name_seqs(directory_of(self._arrays), self._arrays.id_data, frozen(seqs))
        if named[2] < 0:
            raise _unknown()
        return string_array(*named)

    def seq_to(self, versions: Int64s) -> Int64s:
        """Return where versions end; FOREVER where nobody has ended them."""
        seqs: Int64s = self._arrays.seq_to[versions]
        return seqs

    def versions_ending_after(self, horizon: int) -> Int64s:
        """Return the versions that live, and those that ended after a seq, in the order of their seqs."""
        n = int(self._arrays.head[N_VERSIONS])
        return np.flatnonzero(self._arrays.seq_to[:n] > horizon)

    def should_compact(self) -> bool:
        return self.n_ended > max(1024, self.n_live // 2)

    def compacted(self, horizon: int, storage: Storage | None = None) -> Registry:
        """Build a registry without the versions that ended at or before ``horizon``."""
        kept = self.versions_ending_after(horizon)
        new = Registry.create(storage)
        ids = self._all_ids().take(pa.array(kept))
        new.apply(self.seq_from(kept), np.ones(len(kept), np.bool_), ids)
        new.describe(self.postings(kept))
        seq_to = self._arrays.seq_to[kept]
        new._arrays.seq_to[: len(kept)] = seq_to
        new._arrays.head[N_ENDED] = np.count_nonzero(seq_to != FOREVER)
        return new

    def _bounds(self) -> Float64s:
        """View the regions of all versions, a row each; behind them the array may have any length."""
        n = int(self._arrays.head[N_VERSIONS])
        bounds: Float64s = self._arrays.bounds[: 4 * n].reshape(-1, 4)
        return bounds

    def _all_ids(self) -> pa.Array:
        arrays = self._arrays
        n = int(arrays.head[N_VERSIONS])
        offsets = np.ascontiguousarray(arrays.names[1 : 2 * (n + 1) : 2])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(arrays.id_data)]
        return pa.Array.from_buffers(pa.large_string(), n, buffers)

    def _reserve_map(self, n_versions: int) -> None:
        if 10 * n_versions <= 7 * len(self._arrays.map_hash):
            return
        size = 1 << (2 * n_versions).bit_length()
        spans = spans_of(self._all_ids())
        hashes = np.empty(spans.n_rows, np.uint64)
        hash_ids(spans.data, spans.offsets, hashes)
        self._arrays = self._arrays._replace(
            map_hash=self._storage.create("map_hash", np.uint64, size),
            map_version=self._storage.create("map_version", np.uint32, size),
        )
        refill_id_map(self._arrays, hashes)

    def _extend_directory(self, first: int) -> None:
        """Enter the versions from ``first`` on; make all intervals longer when they have become too many."""
        head, names = self._arrays.head, self._arrays.names
        n_versions = int(head[N_VERSIONS])
        if first == n_versions:
            return
        span = int(names[2 * (n_versions - 1)]) - int(names[0])
        most = int(most_intervals(n_versions))
        if span >> int(head[INTERVAL_BITS]) >= most:
            head[INTERVAL_BITS] = (2 * span // most).bit_length()
            head[N_INTERVALS] = first = 0
        self._grow("directory", (span >> int(head[INTERVAL_BITS])) + 1)
        extend_directory(self._arrays, first)

    def _grow(self, name: str, size: int) -> None:
        array = getattr(self._arrays, name)
        if size > len(array):
            longer = self._storage.grow(name, array, max(size, len(array) + len(array) // 2))
            self._arrays = self._arrays._replace(**{name: longer})


def _unknown() -> StateError:
    return StateError("the registry does not know a subscription that a worker matched")
