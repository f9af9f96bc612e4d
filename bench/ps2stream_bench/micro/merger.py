"""What becomes of matches: put together by workers, merged and named by the merger, written to the sink.

Times are processor time of the one thread that works.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s
from ps2stream.arrow import large_lists
from ps2stream.matching.contract import Found, IndexSettings
from ps2stream.matching.index import GI2
from ps2stream.model.space import WORLD, Grid
from ps2stream.registry.index import Registry
from ps2stream.roles.merger import Merger
from ps2stream.roles.packets import FOUND, encode
from ps2stream.roles.worker import by_publication
from ps2stream.sinks.parquet import ParquetSink
from ps2stream_bench.workloads import Arrays

_BEFORE_ALL = -(1 << 63)
_COUNTER_BITS = 6
_LOADED_AT_ONCE = 1_000_000


class WorkerMatches(NamedTuple):
    """What one worker found: publications as it got them, and matches by their rows."""

    seq: Int64s
    ids: pa.Array
    found: Found


class Measured(NamedTuple):
    """Nanoseconds and bytes a match."""

    matches_per_publication: float
    grouping_ns: float
    merging_ns: float
    naming_ns: float
    writing_ns: float
    found_bytes: float
    parquet_bytes: float


def find_matches(arrays: Arrays, grid_bits: int, max_cells: int) -> Found:
    """Match all publications with one index."""
    index = GI2.create(IndexSettings(Grid.over(WORLD, grid_bits), Grid.over(WORLD, _COUNTER_BITS), max_cells))
    index.insert(arrays.subscriptions)
    return index.probe(arrays.probes, _BEFORE_ALL)


def registry_of(subscribes: pa.Table) -> Registry:
    """Enter all subscriptions."""
    registry = Registry.create()
    for start in range(0, subscribes.num_rows, _LOADED_AT_ONCE):
        part = subscribes.slice(start, _LOADED_AT_ONCE).combine_chunks()
        is_subscribe = np.ones(part.num_rows, np.bool_)
        registry.apply(part["seq"].to_numpy(), is_subscribe, part["id"].combine_chunks())
    return registry


def divide(found: Found, seq: Int64s, ids: pa.Array, n_workers: int) -> list[WorkerMatches]:
    """Part matches as workers would have them: of every second publication two workers find some."""
    worker = found.publication % n_workers
    is_shared = (found.publication // n_workers) % 2 == 1
    worker = np.where(is_shared & (found.subscription % 2 == 0), (worker + 1) % n_workers, worker)
    parts = []
    for each in range(n_workers):
        own = worker == each
        rows, publication = np.unique(found.publication[own], return_inverse=True)
        parts.append(
            WorkerMatches(
                seq[rows], ids.take(pa.array(rows)), Found(publication.ravel(), found.subscription[own])
            )
        )
    return parts


def measure(parts: list[WorkerMatches], registry: Registry, directory: Path) -> Measured:
    """Take the matches of one batch from the workers' indexes to a file."""
    sink = ParquetSink.at(directory)
    started = time.process_time()
    found = [_packet(part) for part in parts]
    grouped = time.process_time()
    matches = Merger(registry).merge(found)
    merged = time.process_time()
    registry.ids(matches.column("subscription_seq").to_numpy())
    named = time.process_time()
    sink.write_matches(0, 0, matches.to_batches())
    written = time.process_time()
    n_matches = max(matches.num_rows, 1)
    each = 1e9 / n_matches
    return Measured(
        matches_per_publication=n_matches / len(np.unique(np.concatenate([part.seq for part in parts]))),
        grouping_ns=(grouped - started) * each,
        # Merging names as well; naming alone was done once more to know its share.
        merging_ns=(merged - grouped) * each,
        naming_ns=(named - merged) * each,
        writing_ns=(written - named) * each,
        found_bytes=sum(len(encode(batch)) for batch in found) / n_matches,
        parquet_bytes=sum(len(sink.matches.get(key)) for key in sink.matches.list()) / n_matches,
    )


def _packet(part: WorkerMatches) -> pa.RecordBatch:
    """Do what a worker does with what its index found."""
    rows, seqs = by_publication(part.found, len(part.seq))
    columns = [
        pa.array(part.seq[rows]),
        part.ids.take(pa.array(rows)),
        large_lists(pa.array(seqs.values), seqs.offsets),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FOUND)
