"""What the journal costs: appends by batch size, a single publish, reading."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ps2stream_bench.figure import Case, Context, Figure, Page, Scale
from ps2stream_bench.metrics import medians
from ps2stream_bench.micro.journal import time_appends, time_publishes, time_read
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import mixed_events

_N_EVENTS: dict[Scale, int] = {"tiny": 2_000, "small": 60_000, "paper": 600_000}
_N_APPENDS: dict[Scale, int] = {"tiny": 20, "small": 300, "paper": 2_000}
_N_REPETITIONS: dict[Scale, int] = {"tiny": 1, "small": 3, "paper": 5}
_BATCHES: dict[Scale, tuple[int, ...]] = {
    "tiny": (1, 100, 1_000),
    "small": (1, 100, 10_000),
    "paper": (1, 100, 10_000),
}

_COLUMNS = [
    Column("what", "action"),
    Column("events at once", "batch", ",.0f"),
    Column("events/s", "events_per_s", ",.0f"),
    Column("p50, ms", "p50_ms", ".2f"),
    Column("p99, ms", "p99_ms", ".2f"),
]


def cases(scale: Scale) -> list[Case]:
    """Return a case for each size of a batch; of one event also the whole of a publish."""
    fixed = {"events": _N_EVENTS[scale], "appends": _N_APPENDS[scale], "repetitions": _N_REPETITIONS[scale]}
    return [Case({"batch": batch, **fixed}) for batch in _BATCHES[scale]]


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Append to new journals, durably and not, and read them again."""
    n_events, batch = case["events"], case["batch"]
    corpus = context.corpus("us", n_events)
    events = mixed_events(corpus, "q1", n_events // 6, n_events * 5 // 6, context.seed).combine_chunks()
    n_appends = max(10, min(case["appends"], 1_000_000 // batch))
    rng = np.random.default_rng([context.seed, 13])
    for repetition in range(case["repetitions"]):
        with tempfile.TemporaryDirectory(dir=context.scratch) as directory:
            durable = Path(directory, "durable")
            taken: dict[str, list[float]] = {}
            for is_durable in rng.permutation([True, False]).tolist():
                path, action = (
                    (durable, "durable") if is_durable else (Path(directory, "fast"), "not durable")
                )
                taken[f"append, {action}"] = time_appends(path, events, batch, n_appends, durable=is_durable)
            if batch == 1:
                one = events.slice(events.num_rows - 1, 1)
                taken["open, append, close"] = time_publishes(Path(directory, "one"), one, n_appends // 4)
            for action, seconds in taken.items():
                p50, p99 = np.percentile(seconds, [50, 99]) * 1000
                rate = batch * len(seconds) / sum(seconds)
                yield {
                    "repetition": repetition,
                    "action": action,
                    "events_per_s": rate,
                    "p50_ms": float(p50),
                    "p99_ms": float(p99),
                }
            n_read, seconds_read = time_read(durable, publications=True)
            read = {"repetition": repetition, "action": "read and decode"}
            yield {**read, "events_per_s": n_read / seconds_read}


def page(rows: Sequence[Row]) -> Page:
    """List the rates."""
    lines = sorted(medians(rows, ["action", "batch"]), key=lambda row: (row["action"], row["batch"]))
    return Page(
        paper="",
        ours="Events of the paper's mix are appended to new journals and read again. A durable append "
        "returns when the disk has it.",
        differs="A durable append waits for the disk once, however many events it has: appends of "
        "thousands cost what encoding costs.",
        tables=[table(lines, _COLUMNS)],
        drawings=[],
    )


FIGURE = Figure(
    name="journal",
    title="The journal",
    about="How fast the embedded durable log takes events in and gives them out.",
    cases=cases,
    measure=measure,
    page=page,
)
