"""What the journal costs: appends by batch size, a single publish, reading."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_publications, decode_updates


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
