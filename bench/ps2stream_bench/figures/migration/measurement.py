"""How the figure is measured: selectors choose from the same cells, and each adjusts an engine of its own."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from ps2stream.adjusting.controller import LoadController
from ps2stream.balance.adjustments import Adjustment
from ps2stream.balance.selection import SELECTORS, MovableCells, selector_named
from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.engines.inline import InlineEngine
from ps2stream.model.schemas import PUBLISH
from ps2stream_bench.engines import Meter, Stream, batches_of, check_alike, in_turns, loaded, stream_of
from ps2stream_bench.figure import Case, Context, Scale, Setting
from ps2stream_bench.results import Row
from ps2stream_bench.workloads import Corpus, busy_by_interval, region_of

_ROLES = {"n_workers": 8, "n_dispatchers": 4}
_SIZES: dict[Scale, tuple[int, ...]] = {
    "tiny": (2_000, 4_000, 8_000),
    "small": (25_000, 100_000, 250_000),
    "paper": (1_000_000, 5_000_000, 10_000_000),
}
_CORPUS: dict[Scale, int] = {"tiny": 5_000, "small": 200_000, "paper": 1_000_000}
#: Publications that cells are chosen by.
_CHOSEN_BY: dict[Scale, int] = {"tiny": 3_000, "small": 300_000, "paper": 600_000}
#: The stream that makes migrations: its intervals, publications of each, of a window, and events of a batch.
_MOVING: dict[Scale, dict[str, Setting]] = {
    "tiny": {"intervals": 2, "interval": 1_500, "window": 1_000, "batch": 900},
    "small": {"intervals": 8, "interval": 100_000, "window": 33_000, "batch": 10_000},
    "paper": {"intervals": 10, "interval": 600_000, "window": 200_000, "batch": 10_000},
}

#: Load to be moved, as a share of what the worker has.
SHARES = (0.02, 0.05, 0.1, 0.2)
MOMENTS = 3
#: A selection is timed this many times; the least disturbed one counts.
TIMINGS = 3
#: Publications of a busy region come this many times as often.
RUSH = 10.0


def cases(scale: Scale) -> list[Case]:
    """Return a case of choosing and one of moving for each number of subscriptions."""
    choosing: dict[str, Setting] = {"part": "selection", "publications": _CHOSEN_BY[scale]}
    moving: dict[str, Setting] = {"part": "migration", **_MOVING[scale]}
    return [
        Case({"subscriptions": n, "corpus": _CORPUS[scale], **part})
        for n in _SIZES[scale]
        for part in (choosing, moving)
    ]


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Let the selectors choose from the same cells, or each adjust an engine of its own."""
    return _choose(case, context) if case["part"] == "selection" else _move(case, context)


def _choose(case: Case, context: Context) -> Iterator[Row]:
    """Take the load tables of all workers at some moments of a run, and let every selector choose."""
    n_live, n_publications = case["subscriptions"], case["publications"]
    stream = stream_of(context.corpus("us", case["corpus"]), "q1", n_live, n_publications, context.seed)
    # Watched, but never adjusted: no load is that uneven.
    watching = AdjustmentSettings(scope="local", sigma=1e9, window=n_publications // MOMENTS)
    settings = stream.settings(**_ROLES, adjustment=watching)
    engine = loaded(stream.plan(settings), settings, stream.loading)
    controller = engine.controller
    assert isinstance(controller, LoadController)
    n_events = stream.mixed.num_rows // MOMENTS
    repetition = 0
    for moment in range(MOMENTS):
        for batch in batches_of(stream.mixed.slice(moment * n_events, n_events), n_events // 5):
            engine.process(batch)
        for worker in range(settings.n_workers):
            counted = controller.window.table(worker)
            cells = MovableCells(counted.loads, counted.sizes)
            for share in SHARES:
                about = {"repetition": repetition, "moment": moment, "worker": worker, "share": share}
                yield from ({**about, **row} for row in choices(cells, share, context.seed + repetition))
                repetition += 1


def choices(cells: MovableCells, share: float, seed: int) -> Iterator[Row]:
    """Let every selector choose cells that have a share of the load: on the clock, and to see its memory."""
    target = share * float(cells.loads.sum())
    for index in np.random.default_rng(seed).permutation(len(SELECTORS)):
        selector = selector_named(list(SELECTORS)[index], seed)
        seconds = []
        for _ in range(TIMINGS):
            started = time.perf_counter()
            chosen = selector.select(cells, target)
            seconds.append(time.perf_counter() - started)
        tracemalloc.start()
        selector.select(cells, target)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        yield {
            "selector": selector.name,
            "n_cells": int(np.count_nonzero(cells.loads)),
            "n_chosen": len(chosen),
            "n_bytes": int(cells.sizes[chosen].sum()),
            "load": float(cells.loads[chosen].sum()),
            "target": target,
            "select_s": min(seconds),
            "peak_bytes": peak_bytes,
        }


def _move(case: Case, context: Context) -> Iterator[Row]:
    """Run a stream whose places get busy through an engine for each selector, in turns."""
    n_live, n_intervals = case["subscriptions"], case["intervals"]
    corpus = context.corpus("us", case["corpus"])
    plain = stream_of(corpus, "q1", n_live, n_intervals * case["interval"], context.seed)
    stream = with_rush(plain, corpus, n_intervals, context.seed)
    n_events = stream.mixed.num_rows // n_intervals
    engines: dict[str, InlineEngine] = {}
    for name in SELECTORS:
        adjusting = AdjustmentSettings(scope="local", selector=name, window=case["window"])
        settings = stream.settings(**_ROLES, adjustment=adjusting)
        if not engines:
            # Nobody knows at the start which places will be busy later.
            first = Stream(stream.events.slice(0, n_live + n_events), n_live, stream.stop_words)
            plan = first.plan(settings)
        engines[name] = loaded(plan, settings, stream.loading)
    meters = {name: Meter(engine) for name, engine in engines.items()}
    n_told = dict.fromkeys(engines, 0)
    for interval in range(n_intervals):
        part = stream.mixed.slice(interval * n_events, n_events)
        in_turns(meters, batches_of(part, case["batch"]), context.seed + interval)
        about = {"repetition": 0, "interval": interval}
        rows = [{**about, "selector": name, "row": "interval", **m.read()} for name, m in meters.items()]
        check_alike(rows, "selector")
        yield from rows
        for name, engine in engines.items():
            made = engine.tally.adjustments
            yield from (
                {**about, "selector": name, "row": "migration", "number": number, **record_of(made[number])}
                for number in range(n_told[name], len(made))
            )
            n_told[name] = len(made)


def record_of(made: Adjustment) -> Row:
    """Return what a migration moved and how long it took."""
    return {
        "n_subscriptions": made.n_subscriptions,
        "moved_bytes": made.n_bytes,
        "selected_bytes": sum(step.n_bytes for step in made.steps if step.phase == "move"),
        "selection_s": made.selection_s,
        "migration_s": made.migration_s,
        "pause_s": made.pause_s,
        "n_delayed": made.n_delayed,
    }


def with_rush(stream: Stream, corpus: Corpus, n_intervals: int, seed: int) -> Stream:
    """Let publications of some regions come more often, in every interval but the first of others.

    Subscriptions stay as they are: the paper replays tweets in the order of their time, but draws the centres
    of its subscriptions from all of them.
    """
    rng = np.random.default_rng([seed, 12])
    publishes = np.flatnonzero(stream.events.column("op").to_numpy(zero_copy_only=False) == PUBLISH)
    interval = np.arange(len(publishes)) * n_intervals // max(len(publishes), 1)
    region = region_of(corpus, corpus.lon, corpus.lat)
    source = np.arange(stream.events.num_rows)
    for each, is_busy in enumerate(busy_by_interval(seed, n_intervals)):
        busy = np.flatnonzero(is_busy[region])
        extra = (RUSH - 1.0) * len(busy)
        is_redrawn = (interval == each) & (rng.random(len(publishes)) < extra / (len(region) + extra))
        source[publishes[is_redrawn]] = stream.events.num_rows + rng.choice(busy, int(is_redrawn.sum()))
    drawn = {"lat": pa.array(corpus.lat), "lon": pa.array(corpus.lon), "text": corpus.texts}
    columns = {name: stream.events.column(name) for name in stream.events.schema.names}
    for name, values in drawn.items():
        columns[name] = pa.concat_arrays([columns[name], values]).take(pa.array(source))
    events = pa.RecordBatch.from_arrays(list(columns.values()), schema=stream.events.schema)
    return Stream(events, stream.n_live, stream.stop_words)
