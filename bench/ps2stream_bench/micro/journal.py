"""What the journal costs: appends by batch size, a single publish, reading.

Run with ``python -m ps2stream_bench.micro.journal``; ``--directory`` chooses the disk that is measured.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_publications, decode_updates
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE

_WORDS = ["storm", "market", "harbour", "concert", "traffic", "museum", "fire", "river", "election", "rain"]


def synthetic_events(n_events: int, seed: int) -> pa.Table:
    """Make the paper's mix: five publications of about 80 bytes for each subscription."""
    random_source = random.Random(seed)
    rows = []
    for number in range(n_events):
        lon, lat = random_source.uniform(-180, 179), random_source.uniform(-90, 89)
        if number % 6 == 5:
            region = {"min_lon": lon, "min_lat": lat, "max_lon": lon + 1, "max_lat": lat + 1}
            expression = " AND ".join(random_source.sample(_WORDS, 2))
            rows.append({"op": SUBSCRIBE, "id": f"s{number}", "expression": expression, **region})
        else:
            text = " ".join(random_source.choices(_WORDS, k=12))
            rows.append({"op": PUBLISH, "id": f"p{number}", "lat": lat, "lon": lon, "text": text})
    return pa.Table.from_pylist(rows, schema=EVENTS)


def time_appends(
    directory: Path, events: pa.Table, batch_size: int, n_appends: int, *, durable: bool
) -> list[float]:
    """Return the seconds of each append of ``batch_size`` events to a new journal."""
    batches = [
        events.slice(start, batch_size) for start in range(0, events.num_rows - batch_size + 1, batch_size)
    ]
    seconds = []
    with Journal.open(directory, create=True, durable=durable) as journal:
        for number in range(n_appends):
            batch = batches[number % len(batches)]
            start = time.perf_counter()
            journal.append(batch)
            seconds.append(time.perf_counter() - start)
    return seconds


def time_publishes(directory: Path, event: pa.Table, n_publishes: int) -> list[float]:
    """Return the seconds of opening the journal, appending one event and closing it again."""
    seconds = []
    for _ in range(n_publishes):
        start = time.perf_counter()
        with Journal.open(directory, create=True) as journal:
            journal.append(event)
        seconds.append(time.perf_counter() - start)
    return seconds


def time_read(directory: Path, *, publications: bool) -> tuple[int, float]:
    """Return the events read and decoded from a whole journal, and the seconds it took."""
    n_events = 0
    start = time.perf_counter()
    with Journal.open(directory) as journal:
        for packet in journal.read(0, journal.last().position, publications=publications):
            n_events += decode_updates(packet.updates).num_rows
            if publications:
                n_events += decode_publications(packet.publications).num_rows
    return n_events, time.perf_counter() - start


def _print_appends(label: str, batch_size: int, seconds: Sequence[float]) -> None:
    rate = batch_size * len(seconds) / sum(seconds)
    p50, p99 = np.percentile(seconds, [50, 99]) * 1_000
    print(f"{label:<34} {batch_size:>7,} {rate:>13,.0f} {p50:>9.2f} {p99:>9.2f}", flush=True)


def _print_read(label: str, batch_size: int, directory: Path, *, publications: bool = True) -> None:
    n_events, seconds = time_read(directory, publications=publications)
    print(f"{label:<34} {batch_size:>7,} {n_events / seconds:>13,.0f}", flush=True)


def main() -> None:
    """Measure and print one line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, help="where to put the journals; a temporary one if absent")
    parser.add_argument("--events", type=int, default=60_000, help="distinct events to make")
    parser.add_argument("--appends", type=int, default=500, help="appends of small batches in each case")
    arguments = parser.parse_args()
    events = synthetic_events(arguments.events, seed=1)
    print(f"{'case':<34} {'batch':>7} {'events/s':>13} {'p50 ms':>9} {'p99 ms':>9}")
    with tempfile.TemporaryDirectory(dir=arguments.directory) as root:
        for durable in (True, False):
            label = "append, durable" if durable else "append, not durable"
            for batch_size in (1, 100, 10_000):
                directory = Path(root) / f"{durable}-{batch_size}"
                n_appends = max(20, min(arguments.appends, 2_000_000 // batch_size))
                seconds = time_appends(directory, events, batch_size, n_appends, durable=durable)
                _print_appends(label, batch_size, seconds)
        seconds = time_publishes(Path(root) / "publish", events.slice(0, 1), max(20, arguments.appends // 5))
        _print_appends("open, append, close, durable", 1, seconds)
        for batch_size in (1, 100, 10_000):
            _print_read("read and decode", batch_size, Path(root) / f"True-{batch_size}")
        _print_read("read and decode, updates only", 10_000, Path(root) / "True-10000", publications=False)


if __name__ == "__main__":
    main()
