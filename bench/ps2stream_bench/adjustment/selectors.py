"""How good the selectors are on load tables of real runs (Sec. VI, selecting cells and migration cost)."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

import numpy as np

from ps2stream.balance.loads import Window
from ps2stream.balance.selection import SELECTORS, KnapsackSelector, MovableCells, selector_named
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.pipeline.control import LoadController
from ps2stream_bench.adjustment.streams import (
    add_stream_options,
    batches_of,
    corpus_of,
    engines_of,
    in_turn,
    one_batch,
    settings_of,
)
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workload import KINDS, mixed_events

SUMMARY = "let all selectors choose cells on load tables of real runs"
ABOUT = """\
Run Q1, Q2 and Q3 streams, take the load table of every worker from the window at several moments, and let
all four selectors choose the cells for several shares of the worker's load. Every such choice is an instance.

What the columns say, as the 10 % quantile, the median and the 90 % quantile over all instances:
  bytes / DP's    bytes of the chosen cells over those that DP chooses
  within 5 %      share of the instances in which they are at most 1.05 times DP's
  GR saves        bytes that GR moves less than this selector
  time            to choose; the best of three
  time / DP's     over all instances together

examples:
  python -m ps2stream_bench.adjustment selectors --corpus tweets.parquet --subscriptions 300000
"""

_SHARES = (0.02, 0.05, 0.1, 0.2)
_MOMENTS = 3

_COLUMNS = [
    Column("selector", "selector"),
    Column("instances", "n_instances"),
    Column("bytes / DP's", "cost_ratio"),
    Column("within 5 %", "within_5_percent", ".0%"),
    Column("GR saves", "saved"),
    Column("time, ms", "time_ms"),
    Column("time / DP's", "time_share", ".2%"),
]


def add_options(parser: ArgumentParser) -> None:
    add_stream_options(parser, subscriptions=300_000)
    parser.add_argument(
        "--publications", type=int, default=600_000, metavar="N", help="of each stream, after loading"
    )
    parser.add_argument(
        "--workloads", nargs="+", choices=KINDS, default=list(KINDS), help="to take tables from"
    )


def run(arguments: Namespace) -> list[Row]:
    corpus = corpus_of(arguments)
    rows: list[Row] = []
    for kind in arguments.workloads:
        # Watched, but never adjusted: no load is that uneven.
        watching = AdjustmentSettings(scope="local", sigma=1e9, window=arguments.publications // _MOMENTS)
        settings = settings_of(arguments, corpus, watching)
        events = one_batch(
            mixed_events(corpus, kind, arguments.subscriptions, arguments.publications, arguments.seed)
        )
        engines = engines_of(events, events.num_rows, {kind: settings}, arguments.subscriptions)
        controller = engines[kind].controller
        assert isinstance(controller, LoadController)
        stream = events.slice(arguments.subscriptions)
        every = max(1, stream.num_rows // arguments.batch_events // _MOMENTS)

        def measure(
            number: int, kind: str = kind, window: Window = controller.window, every: int = every
        ) -> None:
            if (number + 1) % every == 0:
                for worker in range(arguments.workers):
                    table = window.table(worker)
                    rows.extend(_choices(kind, number, worker, MovableCells(table.loads, table.sizes)))

        in_turn(engines, batches_of(stream, arguments.batch_events), measure)
    return rows


def report(rows: list[Row]) -> str:
    by_instance: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("workload", "batch", "worker", "share"))
        by_instance.setdefault(key, {})[row["selector"]] = row
    lines = []
    for name in SELECTORS:
        own = [each[name] for each in by_instance.values()]
        ratio = np.array(
            [each[name]["n_bytes"] / max(each["dp"]["n_bytes"], 1) for each in by_instance.values()]
        )
        saved = np.array(
            [1 - each["gr"]["n_bytes"] / max(each[name]["n_bytes"], 1) for each in by_instance.values()]
        )
        seconds = np.array([row["seconds"] for row in own])
        of_dp = sum(each["dp"]["seconds"] for each in by_instance.values())
        lines.append(
            {
                "selector": name.upper(),
                "n_instances": len(own),
                "cost_ratio": _quantiles(ratio, "{:.3f}"),
                "within_5_percent": float(np.mean(ratio <= 1.05)),
                "saved": _quantiles(saved, "{:.0%}"),
                "time_ms": _quantiles(1000 * seconds, "{:.2f}"),
                "time_share": float(seconds.sum() / of_dp),
            }
        )
    n_cells = _quantiles(np.array([row["n_cells"] for row in rows]), "{:,.0f}")
    return f"{table(lines, _COLUMNS)}\n\nCells of an instance: {n_cells}."


def _choices(kind: str, batch: int, worker: int, cells: MovableCells) -> list[Row]:
    rows = []
    for share in _SHARES:
        target = share * float(cells.loads.sum())
        for name in SELECTORS:
            selector = selector_named(name, seed=batch)
            seconds = []
            for _ in range(3):
                started = time.perf_counter()
                chosen = selector.select(cells, target)
                seconds.append(time.perf_counter() - started)
            rows.append(
                {
                    "workload": kind,
                    "batch": batch,
                    "worker": worker,
                    "share": share,
                    "selector": name,
                    "n_cells": int(np.count_nonzero(cells.loads)),
                    "n_chosen": len(chosen),
                    "n_bytes": int(cells.sizes[chosen].sum()),
                    "load": float(cells.loads[chosen].sum()),
                    "target": target,
                    "seconds": min(seconds),
                    "unit": selector.unit if isinstance(selector, KnapsackSelector) else 1,
                }
            )
    return rows


def _quantiles(values: np.ndarray, style: str) -> str:
    return " / ".join(style.format(each) for each in np.quantile(values, (0.1, 0.5, 0.9)))
