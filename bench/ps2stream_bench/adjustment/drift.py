"""What adjustment is worth while the stream drifts (Sec. VI, the effect of dynamic load adjustments)."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass

import numpy as np

from ps2stream.arrays import Float64s
from ps2stream.balance.adjustments import Adjustment
from ps2stream.balance.settings import AdjustmentSettings, Scope
from ps2stream.pipeline.inline import InlineEngine
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
from ps2stream_bench.workload import drifting_events

SUMMARY = "run a drifting stream with and without adjustment"
ABOUT = """\
Run drifting Q3 through inline engines that start from the same plan and take turns batch by batch: one
without adjustment, one with local and one with local and global adjustment. From interval to interval the
subscriptions of a share of the 100 regions change between Q1 and Q2; an interval lasts as long as a life of
a subscription. With --share 0 nothing drifts: nothing should be adjusted.

What the columns say:
  projected tuples/s  tuples / time of the busiest worker or dispatcher: the pace of a cluster that has a core
                      for every role
  gain                over the engine without adjustment, in the same interval of the same run
  max/mean, max/min   how unevenly the time of the workers is shared
  adjustments         made in the interval; subscriptions and megabytes they moved
  pause               the longest time that the stream stood still for one of them
  > 100 ms, > 1 s     share of the interval's publications that had to wait so long for one

examples:
  python -m ps2stream_bench.adjustment drift --corpus tweets.parquet
  python -m ps2stream_bench.adjustment drift --rush 5 --share 0
  python -m ps2stream_bench.adjustment drift --share 0 --intervals 20
"""

_SCOPES: dict[str, Scope] = {"none": "off", "local": "local", "local and global": "both"}

_COLUMNS = [
    Column("interval", "interval"),
    Column("adjustment", "contender"),
    Column("projected tuples/s", "projected_tuples_per_s", ",.0f"),
    Column("gain", "gain", "+.0%"),
    Column("by workers alone", "gain_by_workers", "+.0%"),
    Column("max/mean", "max_mean", ".2f"),
    Column("max/min", "max_min", ".2f"),
    Column("adjustments", "n_adjustments"),
    Column("moved", "n_subscriptions", ",d"),
    Column("MB", "megabytes", ".1f"),
    Column("pause, ms", "longest_pause_ms", ".0f"),
    Column("> 100 ms", "share_over_100_ms", ".1%"),
    Column("> 1 s", "share_over_1_s", ".1%"),
]


def add_options(parser: ArgumentParser) -> None:
    add_stream_options(parser, subscriptions=100_000)
    add = parser.add_argument
    add("--intervals", type=int, default=10, metavar="N", help="how often the stream changes, plus one")
    add("--share", type=float, default=0.1, metavar="S", help="of the regions that change their kind")
    add("--rush", type=float, default=1.0, metavar="X", help="how many times as much comes from busy regions")
    add("--sigma", type=float, default=AdjustmentSettings().sigma, metavar="X", help="when to adjust")
    add("--target", type=float, default=AdjustmentSettings().target, metavar="X", help="how far")
    add(
        "--window",
        type=int,
        default=AdjustmentSettings().window,
        metavar="N",
        help="publications to judge by",
    )
    add("--check-every", type=int, default=1_000_000, metavar="N", help="publications between global checks")
    add("--selector", default="gr", help="dp, gr, si or ra")
    add("--contenders", nargs="+", choices=list(_SCOPES), default=list(_SCOPES), help="'none' is needed")


def run(arguments: Namespace) -> list[Row]:
    corpus = corpus_of(arguments)
    n_live, n_intervals = arguments.subscriptions, arguments.intervals
    n_publications = 10 * n_live * n_intervals
    drift = {"n_intervals": n_intervals, "share": arguments.share, "rush": arguments.rush}
    events = one_batch(drifting_events(corpus, n_live, n_publications, arguments.seed, **drift))
    interval_events = (events.num_rows - n_live) // n_intervals
    chosen = {
        "sigma": arguments.sigma,
        "target": arguments.target,
        "window": arguments.window,
        "check_every": arguments.check_every,
        "selector": arguments.selector,
    }
    contenders = {
        name: settings_of(arguments, corpus, AdjustmentSettings(scope=scope, **chosen))
        for name, scope in _SCOPES.items()
        if name in arguments.contenders
    }
    engines = engines_of(events, n_live + interval_events, contenders, n_live)
    meters = {name: _Meter(engine) for name, engine in engines.items()}
    rows: list[Row] = []
    for interval in range(n_intervals):
        print(f"interval {interval + 1} of {n_intervals}", file=sys.stderr)
        part = events.slice(n_live + interval * interval_events, interval_events)
        in_turn(engines, batches_of(part, arguments.batch_events), lambda number: None)
        figures = {name: meter.read() for name, meter in meters.items()}
        plain = figures["none"]
        for name, row in figures.items():
            rows.append(
                {
                    "interval": interval,
                    "contender": name,
                    **row,
                    "gain": row["projected_tuples_per_s"] / plain["projected_tuples_per_s"] - 1,
                    "gain_by_workers": plain["busiest_worker_s"] / row["busiest_worker_s"] - 1,
                }
            )
    return rows


def report(rows: list[Row]) -> str:
    """Show every interval, and the means over all but the first, in which nothing has drifted."""
    drifted = [row for row in rows if row["interval"] > 0] or rows
    means = []
    for name in dict.fromkeys(row["contender"] for row in rows):
        own = [row for row in drifted if row["contender"] == name]
        numbers = {
            column.field: float(np.mean([row[column.field] for row in own])) for column in _COLUMNS[2:]
        }
        sums = {field: int(sum(row[field] for row in own)) for field in ("n_adjustments", "n_subscriptions")}
        means.append({**numbers, **sums, "interval": "all but the first", "contender": name})
    return table([*rows, *means], _COLUMNS)


@dataclass(slots=True)
class _Meter:
    """Read what an engine has done since the last reading."""

    engine: InlineEngine
    _workers: Float64s | None = None
    _dispatchers: Float64s | None = None
    _n_events: int = 0
    _n_publications: int = 0
    _n_adjustments: int = 0

    def __post_init__(self) -> None:
        self.read()

    def read(self) -> Row:
        tally = self.engine.tally
        workers = np.array([worker.busy_s for worker in tally.workers])
        dispatchers = np.array([dispatcher.busy_s for dispatcher in tally.dispatchers])
        spent = workers if self._workers is None else workers - self._workers
        routing = dispatchers if self._dispatchers is None else dispatchers - self._dispatchers
        n_events, n_publications = (
            tally.n_events - self._n_events,
            tally.n_publications - self._n_publications,
        )
        made = tally.adjustments[self._n_adjustments :]
        self._workers, self._dispatchers = workers, dispatchers
        self._n_events, self._n_publications = tally.n_events, tally.n_publications
        self._n_adjustments = len(tally.adjustments)
        return {
            "n_events": n_events,
            "projected_tuples_per_s": n_events / max(spent.max(), routing.max(), 1e-9),
            "busiest_worker_s": float(spent.max()),
            "busiest_dispatcher_s": float(routing.max()),
            "max_mean": float(spent.max() / max(spent.mean(), 1e-9)),
            "max_min": float(spent.max() / max(spent.min(), 1e-9)),
            "workers_busy_s": float(spent.sum()),
            "n_adjustments": len(made),
            "n_subscriptions": sum(each.n_subscriptions for each in made),
            "megabytes": sum(each.n_bytes for each in made) / 1e6,
            "longest_pause_ms": 1000 * max((each.pause_s for each in made), default=0.0),
            "share_over_100_ms": _delayed(made, 0.1) / max(n_publications, 1),
            "share_over_1_s": _delayed(made, 1.0) / max(n_publications, 1),
        }


def _delayed(made: list[Adjustment], more_than_s: float) -> int:
    return sum(each.n_delayed for each in made if each.pause_s > more_than_s)
