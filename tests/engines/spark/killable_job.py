"""A job on a journal, as a process of its own that tests stop, starve and kill.

    python killable_job.py DIRECTORY BATCH_EVENTS [CHAOS]

With CHAOS, a seed, the load is adjusted at random before most batches. Works in DIRECTORY (journal,
state, out), says ``batch N`` on stdout for every batch done, and ends when the file DIRECTORY/published
exists and the journal is read to its end. Exit code 0; 1 with the reason on stderr when the stream
fails; 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from laws.chaos import Chaos
from laws.engines import one_batch
from ps2stream.adjusting.controller import Controller
from ps2stream.config import Settings
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.spark.session import local_session
from ps2stream.engines.spark.stream import journal_stream
from ps2stream.errors import PS2StreamError
from ps2stream.journal import Journal
from ps2stream.state.state import State
from ps2stream.testing.generators import random_events


def work(directory: Path, batch_events: int, controller: Controller | None) -> None:
    parent = os.getppid()
    settings = Settings(n_workers=3, n_dispatchers=2, batch_events=batch_events)
    spark = local_session("killable job", cores=2, memory="1g")
    # Lost tasks are told of at this level; the tests count them.
    spark.sparkContext.setLogLevel("WARN")
    where = (directory / "journal", directory / "state", directory / "out")
    try:
        with (
            Journal.open(directory / "journal") as journal,
            journal_stream(
                spark, *where, settings, on_batch=tell, snapshot_every=50, controller=controller
            ) as query,
        ):
            while not is_done(directory, journal):
                query.check()
                if os.getppid() != parent:  # the tests themselves were killed
                    raise KeyboardInterrupt
                time.sleep(0.05)
    finally:
        spark.stop()


def chaos(seed: int) -> Controller:
    return Chaos(seed, one_batch(random_events(200, seed)))


def tell(done: BatchDone) -> None:
    print(f"batch {done.batch_id}", flush=True)


def is_done(directory: Path, journal: Journal) -> bool:
    if not (directory / "published").exists():
        return False
    return State.at(directory / "state").ledger.last_seq() >= journal.last().seq


def main() -> int:
    try:
        directory, batch_events, *seed = sys.argv[1:]
        work(Path(directory), int(batch_events), chaos(int(seed[0])) if seed else None)
    except KeyboardInterrupt:
        return 130
    except PS2StreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
