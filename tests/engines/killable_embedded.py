"""A job in one process that tests kill.

    python killable_embedded.py DIRECTORY CHAOS

The load is adjusted at random, by the seed CHAOS, before most batches. Says ``batch N`` on stdout for every
batch done, and ends when the file DIRECTORY/published exists and the journal is read to its end.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from laws.chaos import Chaos
from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.engines.embedded import embedded_stream
from ps2stream.engines.stream_start import StreamOptions
from ps2stream.journal import Journal
from ps2stream.state.state import State
from ps2stream.testing.generators import random_events


def main() -> None:
    directory, seed = Path(sys.argv[1]), int(sys.argv[2])
    chaos = Chaos(seed, one_batch(random_events(200, seed)))
    where = (directory / "journal", directory / "state", directory / "out")
    with (
        Journal.open(where[0]) as journal,
        embedded_stream(
            *where,
            Settings(n_workers=3, batch_events=60),
            on_batch=lambda done: print(f"batch {done.batch_id}", flush=True),
            options=StreamOptions(snapshot_every=50, controller=chaos),
        ) as stream,
    ):
        ledger = State.at(where[1]).ledger
        while not ((directory / "published").exists() and ledger.last_seq() >= journal.last().seq):
            stream.check()
            time.sleep(0.05)


if __name__ == "__main__":
    main()
