"""Kernels that read and write what the registry keeps of versions: regions, posting terms, ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int64s, UInt64s
from ps2stream.kernels import kernel, prefetch
from ps2stream.registry.layout import N_POSTINGS, N_VERSIONS, RegistryArrays, Verdicts
from ps2stream.routing.layout import Postings

#: How many versions ahead their lines are asked for.
_AHEAD = 8


class Described(NamedTuple):
    """As much of a registry as versions are described by."""

    names: Int64s
    bounds: Float64s
    posting_offsets: Int64s
    posting_terms: UInt64s


class Ended(NamedTuple):
    """Versions that ended, in the order of their ends; ids lie in the registry, from start to stop."""

    versions: Int64s
    seq_from: Int64s
    seq_to: Int64s
    id_starts: Int64s
    id_stops: Int64s


@kernel
def describe(arrays: RegistryArrays, postings: Postings) -> bool:
    """Add regions and posting terms of the newest versions; False when there is no capacity for the terms."""
    n, n_terms = len(postings.offsets) - 1, arrays.head[N_POSTINGS]
    if n_terms + len(postings.terms) > len(arrays.posting_terms):
        return False
    first = arrays.head[N_VERSIONS] - n
    for i in range(4 * n):
        arrays.bounds[4 * first + i] = postings.bounds[i]
    for i in range(1, n + 1):
        arrays.posting_offsets[first + i] = n_terms + postings.offsets[i]
    for i in range(len(postings.terms)):
        arrays.posting_terms[n_terms + i] = postings.terms[i]
    arrays.head[N_POSTINGS] = n_terms + len(postings.terms)
    return True


@kernel
def postings_of(described: Described, versions: Int64s) -> Postings:
    """Copy regions and posting terms of versions."""
    bounds, offsets = np.empty(4 * len(versions)), np.zeros(len(versions) + 1, np.int64)
    for i in range(len(versions)):
        if i + _AHEAD < len(versions):
            prefetch(described.posting_offsets, versions[i + _AHEAD])
            prefetch(described.bounds, 4 * versions[i + _AHEAD])
        version = versions[i]
        for corner in range(4):
            bounds[4 * i + corner] = described.bounds[4 * version + corner]
        n_terms = described.posting_offsets[version + 1] - described.posting_offsets[version]
        offsets[i + 1] = offsets[i] + n_terms
    terms = np.empty(offsets[-1], np.uint64)
    for i in range(len(versions)):
        start = described.posting_offsets[versions[i]]
        for term in range(offsets[i + 1] - offsets[i]):
            terms[offsets[i] + term] = described.posting_terms[start + term]
    return Postings(bounds, offsets, terms)


@kernel
def ended_by(names: Int64s, seq: Int64s, verdicts: Verdicts) -> tuple[Ended, int, int]:
    """List what updates ended; return also the bytes of its ids, and how many updates meant nothing."""
    n = n_unknown = n_bytes = 0
    for row in range(len(seq)):
        n += int(verdicts.ended_version[row] >= 0)
        n_unknown += int(verdicts.is_unknown[row])
    numbers = np.empty((5, n), np.int64)
    ended = Ended(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])
    n = 0
    for row in range(len(seq)):
        if row + _AHEAD < len(seq):
            prefetch(names, 2 * verdicts.ended_version[row + _AHEAD])
        version = verdicts.ended_version[row]
        if version < 0:
            continue
        ended.versions[n], ended.seq_to[n] = version, seq[row]
        ended.seq_from[n], ended.id_starts[n] = names[2 * version], names[2 * version + 1]
        ended.id_stops[n] = names[2 * version + 3]
        n_bytes += ended.id_stops[n] - ended.id_starts[n]
        n += 1
    return ended, n_bytes, n_unknown
