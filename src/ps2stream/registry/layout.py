"""The registry's memory: every version of every subscription that can still match.

Versions are appended in the order of their seq. A directory says which is the first version of each
interval of seqs, all intervals being equally long, and where seqs come evenly the position within it can be
computed: a seq is found with one access instead of a bisection. What that access brings is all that naming
needs but the bytes of the id. A table by id finds the newest version of an id.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ps2stream.arrays import Float64s, Int64s, UInt8s, UInt32s, UInt64s, table_size
from ps2stream.arrow import COPY_MARGIN

# Positions in `head`.
N_VERSIONS, N_ID_BYTES, N_POSTINGS, N_ENDED, N_IDS, N_INTERVALS, INTERVAL_BITS = range(7)
HEAD_SIZE = 8


class RegistryArrays(NamedTuple):
    head: Int64s
    names: Int64s  # two a version: its seq, and where its id starts; the next one's start ends it
    directory: UInt32s  # the first version of each 2**INTERVAL_BITS seqs, or of the next that has one
    seq_to: Int64s
    bounds: Float64s  # four a version
    id_data: UInt8s  # with some bytes to spare behind
    posting_offsets: Int64s  # one more than there are versions
    posting_terms: UInt64s  # the rarest term of each clause
    map_hash: UInt64s  # open addressing by the hash of an id
    map_version: UInt32s  # newest version of the id + 1; 0 is free


DTYPES = {
    "head": np.int64,
    "names": np.int64,
    "directory": np.uint32,
    "seq_to": np.int64,
    "bounds": np.float64,
    "id_data": np.uint8,
    "posting_offsets": np.int64,
    "posting_terms": np.uint64,
    "map_hash": np.uint64,
    "map_version": np.uint32,
}

INITIAL_SIZES = {
    "head": HEAD_SIZE,
    "names": 2050,
    "directory": 1024,
    "seq_to": 1024,
    "bounds": 4096,
    "id_data": 16384,
    "posting_offsets": 1025,
    "posting_terms": 2048,
    "map_hash": 4096,
    "map_version": 4096,
}


def needed_sizes(arrays: RegistryArrays) -> dict[str, int]:
    """Return the least lengths of the arrays for what ``head`` counts."""
    head = arrays.head
    if len(head) < HEAD_SIZE:
        return {"head": HEAD_SIZE}
    n_versions = int(head[N_VERSIONS])
    ids = max(int(head[N_IDS]) + 1, table_size(arrays.map_hash, arrays.map_version))
    return {
        "names": 2 * (n_versions + 1),
        "directory": int(head[N_INTERVALS]),
        "seq_to": n_versions,
        "bounds": 4 * n_versions,
        "id_data": int(head[N_ID_BYTES]) + COPY_MARGIN,
        "posting_offsets": n_versions + 1,
        "posting_terms": int(head[N_POSTINGS]),
        "map_hash": ids,
        "map_version": ids,
    }


class IdUpdates(NamedTuple):
    """Updates in the order of their seq, as far as the registry decides on them."""

    seq: Int64s
    is_subscribe: npt.NDArray[np.bool_]
    id_offsets: Int64s
    id_data: UInt8s
    id_hash: UInt64s


class Verdicts(NamedTuple):
    """What became of updates."""

    is_unknown: npt.NDArray[np.bool_]  # an unsubscribe without a live subscription
    ended_version: Int64s  # of this row, by unsubscribing or replacing; -1 for none
