"""``ps2stream-bench generate``: publications or event logs in a file, and what they are like."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from dataclasses import asdict, fields
from pathlib import Path

import pyarrow.parquet as pq

from ps2stream.files import whole_file
from ps2stream_bench.workloads import (
    PROFILES,
    Statistics,
    corpus_for,
    drifting_events,
    mixed_events,
    statistics_of,
)
from ps2stream_bench.workloads import write_publications as stream_publications

#: Texts that the corpus of an event log has at most; publications are drawn from it with repetition.
_LARGEST_CORPUS = 1_000_000
#: Rows that are enough for the figures of a large file.
_CHECKED = 200_000


def write_publications(arguments: Namespace) -> None:
    """Stream publications to a file."""
    started = time.monotonic()

    def tell(n_done: int) -> None:
        print(f"\r{n_done:,} of {arguments.publications:,}", end="", file=sys.stderr)

    told = tell if sys.stderr.isatty() else None
    stream_publications(arguments.country, arguments.publications, arguments.seed, arguments.out, told)
    _tell(arguments.out, arguments.publications, started)


def write_events(arguments: Namespace) -> None:
    """Write an event log: subscriptions, then publications and updates."""
    started = time.monotonic()
    n_live, n = arguments.subscriptions, arguments.publications
    corpus = corpus_for(arguments.country, min(max(n, 1_000), _LARGEST_CORPUS), arguments.seed)
    if arguments.workload == "drifting":
        n_intervals = max(2, n // (10 * n_live))
        events = drifting_events(corpus, n_live, n, arguments.seed, n_intervals=n_intervals)
    else:
        events = mixed_events(corpus, arguments.workload, n_live, n, arguments.seed)
    with whole_file(arguments.out) as file:
        pq.write_table(events, file, row_group_size=100_000, compression="zstd")
    _tell(arguments.out, events.num_rows, started)


def check(arguments: Namespace) -> None:
    """Print the figures of a file's publications beside those of real tweets."""
    table = pq.read_table(arguments.out, columns=["lat", "lon", "text"]).drop_null().slice(0, _CHECKED)
    profile = PROFILES[arguments.country]
    found = statistics_of(
        table["lon"].to_numpy(),
        table["lat"].to_numpy(),
        table["text"].combine_chunks(),
        frame=profile.frame,
        region_degrees=profile.region_degrees,
    )
    wanted = asdict(profile.targets)
    print(f"{'':20}{'here':>12}{'fitted to':>12}")
    for field in fields(Statistics):
        value, target = getattr(found, field.name), wanted.get(field.name)
        print(f"{field.name:20}{value:>12,.4g}{'' if target is None else f'{target:,.4g}':>12}")


def _tell(path: Path, n: int, started: float) -> None:
    seconds = time.monotonic() - started
    print(f"{n:,} rows in {path} ({n / max(seconds, 1e-9):,.0f}/s)")
