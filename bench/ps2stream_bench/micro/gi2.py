"""GI2 against a naive version of the same idea, and over grids: inserts, probes, ends, bytes.

Run with ``python -m ps2stream_bench.micro.gi2``. All contenders take turns in one run (A B A B ...), so that a noisy
machine is noisy for all of them: trust the ratios more than the rates. Time is CPU time of the one
thread that works. Several ``--bits`` and
``--max-cells`` make a sweep.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ps2stream.arrays import Int64s, frozen
from ps2stream.config import Settings
from ps2stream.matching.index import GI2, GI2Settings
from ps2stream.matching.layout import Found, Probes, Subscriptions
from ps2stream.model.space import WORLD, Grid
from ps2stream_bench.micro.host import host_facts
from ps2stream_bench.micro.naive_gi2 import NaiveGI2
from ps2stream_bench.workload import (
    KINDS,
    Arrays,
    compile_arrays,
    publish_events,
    read_corpus,
    subscribe_events,
    synthetic_corpus,
)

BEFORE_ALL = -(1 << 63)
_END_SHARE = 0.1
_WARM_UP = 0.1
_CORPUS_SIZE = 80_000
_COUNTER_BITS = 6


class Index(Protocol):
    """What both versions can do."""

    def insert(self, subs: Subscriptions) -> None: ...

    def end(self, seq_from: Int64s, seq_to: Int64s) -> int: ...

    def probe(self, probes: Probes, horizon: int) -> Found: ...


class Contender(NamedTuple):
    """A version of the index on one grid; ``max_cells`` is 0 for the naive one, which has no such limit."""

    name: str
    bits: int
    max_cells: int

    def build(self, counters: Grid) -> GI2 | NaiveGI2:
        grid = Grid.over(WORLD, self.bits)
        if self.name == "naive":
            return NaiveGI2(grid)
        return GI2.create(GI2Settings(grid, counters, self.max_cells))


class Figures(NamedTuple):
    """What one turn of one contender came to."""

    inserts_per_s: float
    ends_per_s: float
    publications_per_s: float
    candidates_per_publication: float
    matches_per_publication: float
    postings_per_subscription: float
    bytes_per_subscription: float


def measure(contender: Contender, arrays: Arrays) -> Figures:
    """Fill an index, match all publications, end some subscriptions."""
    subs, probes = arrays
    index = contender.build(_counters(subs))
    n_subs, n_publications = len(subs.seq_from), len(probes.seq)
    insert_s = _seconds(lambda: index.insert(subs))
    index.probe(_head_of(probes, int(_WARM_UP * n_publications)), BEFORE_ALL)
    n_before = _sizes(index)[0]
    started = time.process_time()
    found = index.probe(probes, BEFORE_ALL)
    probe_s = time.process_time() - started
    n_candidates, n_postings, n_bytes = _sizes(index)
    ended = frozen(np.random.default_rng(0).permutation(subs.seq_from)[: int(_END_SHARE * n_subs)])
    end_s = _seconds(lambda: index.end(ended, frozen(np.full(len(ended), probes.seq[-1] + 1))))
    return Figures(
        inserts_per_s=n_subs / insert_s,
        ends_per_s=len(ended) / end_s,
        publications_per_s=n_publications / probe_s,
        candidates_per_publication=(n_candidates - n_before) / n_publications,
        matches_per_publication=len(found.publication) / n_publications,
        postings_per_subscription=n_postings / n_subs,
        bytes_per_subscription=n_bytes / n_subs,
    )


def take_turns(
    contenders: Sequence[Contender], arrays: Arrays, n_repetitions: int
) -> Iterable[tuple[int, Contender, Figures]]:
    """Measure every contender once, then every one again; the kernels are compiled before."""
    small = Arrays(_first_rows(arrays.subscriptions, 1000), _head_of(arrays.probes, 100))
    for contender in {contender.name: contender for contender in contenders}.values():
        measure(contender, small)
    for repetition in range(n_repetitions):
        for contender in contenders:
            gc.collect()
            yield repetition, contender, measure(contender, arrays)


def _sizes(index: GI2 | NaiveGI2) -> tuple[int, int, int]:
    """Return candidates so far, postings and bytes; the counters of cells are no part of either index."""
    if isinstance(index, NaiveGI2):
        return index.n_candidates, index.n_postings, index.n_bytes
    counts = index.counts()
    n_counter_bytes = sum(counter.nbytes for counter in index.cell_counters().values())
    return counts.n_candidates, counts.n_postings, counts.n_bytes - n_counter_bytes


def _counters(subs: Subscriptions) -> Grid:
    bounds = subs.bounds.reshape(-1, 4)
    low, high = bounds[:, :2].min(axis=0), bounds[:, 2:].max(axis=0)
    return Grid.over((float(low[0]), float(low[1]), float(high[0]), float(high[1])), _COUNTER_BITS)


def _head_of(probes: Probes, n: int) -> Probes:
    return probes._replace(seq=probes.seq[:n], lon=probes.lon[:n], lat=probes.lat[:n])


def _first_rows(subs: Subscriptions, n: int) -> Subscriptions:
    return subs._replace(seq_from=subs.seq_from[:n], seq_to=subs.seq_to[:n], bounds=subs.bounds[: 4 * n])


def _seconds(action: Any) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def report(rows: list[dict[str, Any]]) -> str:
    """Print medians by contender, and how many times the naive version's rates they are."""
    groups: dict[Contender, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(Contender(row["contender"], row["bits"], row["max_cells"]), []).append(row)
    medians = {
        contender: Figures(*(median(row[name] for row in group) for name in Figures._fields))
        for contender, group in groups.items()
    }
    naive = [figures.publications_per_s for (name, _, _), figures in medians.items() if name == "naive"]
    best = max(naive, default=0.0)
    lines = [
        "| index | bits | cells | inserts/s | ends/s | publications/s | to the best naive "
        "| candidates | matches | postings/sub | bytes/sub |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, bits, max_cells), f in medians.items():
        ratio = f"{f.publications_per_s / best:.2f}" if best else ""
        lines.append(
            f"| {name} | {bits} | {max_cells or 'all'} | {f.inserts_per_s:,.0f} | {f.ends_per_s:,.0f} "
            f"| {f.publications_per_s:,.0f} | {ratio} | {f.candidates_per_publication:.2f} "
            f"| {f.matches_per_publication:.2f} | {f.postings_per_subscription:.1f} "
            f"| {f.bytes_per_subscription:.0f} |"
        )
    return "\n".join(lines)


def run(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure all contenders; return a row for each turn."""
    if arguments.publications:
        corpus = read_corpus(arguments.publications)
    else:
        corpus = synthetic_corpus(_CORPUS_SIZE, arguments.seed)
    n_subs = arguments.subscriptions
    subscribes = subscribe_events(corpus, arguments.workload, n_subs, arguments.seed)
    publishes = publish_events(corpus, arguments.probes, n_subs + 1, arguments.seed + 1)
    arrays = compile_arrays(corpus, subscribes, publishes)
    naive_bits = arguments.bits[:1] if arguments.naive_bits is None else arguments.naive_bits
    contenders = [Contender("gi2", bits, cells) for bits in arguments.bits for cells in arguments.max_cells]
    contenders += [Contender("naive", bits, 0) for bits in naive_bits]
    fixed = {
        **host_facts(),
        "corpus": "file" if arguments.publications else "synthetic",
        "workload": arguments.workload,
        "n_subscriptions": n_subs,
        "n_publications": arguments.probes,
        "seed": arguments.seed,
    }
    rows = []
    for repetition, (name, bits, cells), figures in take_turns(contenders, arrays, arguments.repeat):
        varied = {"repetition": repetition, "contender": name, "bits": bits, "max_cells": cells}
        rows.append({**fixed, **varied, **figures._asdict()})
    return rows


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    defaults = Settings()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--probes", type=int, default=50_000, help="publications to match in a turn")
    parser.add_argument("--workload", choices=KINDS, default="q1")
    parser.add_argument("--bits", type=int, nargs="+", default=[defaults.grid_bits])
    parser.add_argument("--max-cells", type=int, nargs="+", default=[defaults.max_cells])
    parser.add_argument("--naive-bits", type=int, nargs="*", help="the naive one's; the first of --bits")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--publications", type=Path, help="a Parquet file with lat, lon and text")
    parser.add_argument("--out", type=Path, help="write the raw rows to this Parquet file")
    return parser.parse_args(argv)


def main() -> None:
    """Measure and print one line a contender."""
    arguments = parse()
    rows = run(arguments)
    if arguments.out:
        pq.write_table(pa.Table.from_pylist(rows), arguments.out)
    print(report(rows))


if __name__ == "__main__":
    main()
