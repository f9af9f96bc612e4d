"""A campaign of faults: a job is fed at a steady pace while one thing after the other dies around it.

    ./dev cluster run --cores 4 --memory 2g -- python tests/engines/spark/faults/campaign.py --seed 1

Runs as the command of a bed. Faults come one after the other, each at a random moment after the job has got
over the one before; which, where and when follows from the seed, what the job is doing then does not. At the
end all that was delivered is compared with the oracle. Writes one line of JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from engines.spark.faults.drivers import CampaignError, Drivers
from engines.spark.faults.feeds import Feed, JournalFeed, KafkaFeed
from engines.spark.faults.kinds import KINDS, Scene, scene_of
from laws.engines import one_batch
from ps2stream.model.events import in_order
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.testing.generators import random_events
from ps2stream.testing.oracle import Deliveries
from testbed.bed import HANDLE, load

#: More than any campaign appends.
_MOST_EVENTS = 40_000
_APPEND_EVENTS = 20
_APPEND_EVERY_S = 0.5
#: Seconds from the end of one fault to the next, more than two batches take.
_QUIET_S = (2.0, 7.0)


class Publisher:
    """Append events at a steady pace in a thread, until told to stop."""

    def __init__(self, feed: Feed, events: pa.RecordBatch) -> None:
        self._feed, self._events = feed, events
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self.n_appended = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        due = time.monotonic()
        try:
            while not self._stopped.wait(max(0.0, due - time.monotonic())):
                due += _APPEND_EVERY_S
                self._feed.append(self._events.slice(self.n_appended, _APPEND_EVENTS))
                self.n_appended += _APPEND_EVENTS
                if self.n_appended >= self._events.num_rows:
                    raise CampaignError(f"all {self._events.num_rows} events are appended")
        except BaseException as error:
            self._failure = error


def kinds_in_turn(kinds: list[str], n_faults: int, rng: random.Random) -> list[str]:
    """Return as many faults, each kind as often as any other, in any order."""
    chosen: list[str] = []
    while len(chosen) < n_faults:
        chosen += rng.sample(kinds, len(kinds))
    return chosen[:n_faults]


def one_fault(kind: str, scene: Scene, feed: Feed, began: float) -> dict[str, Any]:
    """Make a fault and wait until the job has gone on and all is whole again; return a row of the report."""
    drivers = scene.drivers
    time.sleep(scene.random.uniform(*_QUIET_S))
    before, n_before = drivers.heard.batches[-1], len(drivers.heard.batches)
    position, made_at, n_drivers = feed.position(), time.monotonic(), len(drivers.all)
    fault = KINDS[kind](scene)
    after = drivers.wait_for_batch(position)
    scene.wait_until_mended()
    moved = moves([each.said["hosts"] for each in drivers.heard.batches[n_before - 1 :]])
    row = {
        "kind": kind,
        "member": fault.member,
        "at_s": round(made_at - began, 2),
        "to_go_on_s": round(after.at - made_at, 2),
        "last_batch_before": before.number,
        "first_batch_beyond": after.number,
        "n_moves": moved,
        "n_drivers": len(drivers.all) - n_drivers,
        **fault.details,
    }
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def moves(hosts: list[dict[str, str]]) -> int:
    """Count workers that changed their host from batch to batch."""
    steps = itertools.pairwise(hosts)
    return sum(after[worker] != before.get(worker) for before, after in steps for worker in after)


def verdict(expected: Deliveries, delivered: Deliveries) -> dict[str, Any]:
    """Compare what was delivered with what the oracle says."""
    return {
        "n_matches": len(expected.matches),
        "n_rejected": len(expected.rejected),
        "n_lost": len(set(expected.matches) - set(delivered.matches)),
        "n_doubled": len(delivered.matches) - len(set(delivered.matches)),
        "n_wrong": len(set(delivered.matches) - set(expected.matches)),
        "as_the_oracle": delivered == expected,
    }


def run(seed: int, faults: list[str], feed: Feed, where: str, logs: Path) -> dict[str, Any]:
    rng = random.Random(seed)
    events = random_events(_MOST_EVENTS, seed, invalid_share=feed.invalid_share, n_subscription_ids=500)
    kept, _, _ = in_order(one_batch(events), BEFORE_ALL_SEQS)  # what a source takes
    with _driven([where, str(seed), *feed.job_arguments], logs) as drivers:
        publisher = Publisher(feed, kept)
        drivers.wait_for_batch(feed.position())
        began = time.monotonic()
        with scene_of(load(Path(os.environ[HANDLE])), drivers, rng) as scene:
            rows = [one_fault(kind, scene, feed, began) for kind in faults]
        publisher.stop()
        n_ended = len(drivers.heard.ends)
        drivers.current.finish()
        code = drivers.current.wait()
        if code:
            raise CampaignError(f"the last driver ended with exit code {code}: {drivers.heard.ends}")
    batches = drivers.heard.batches
    return {
        "seed": seed,
        "source": feed.job_arguments[0],
        "n_events": publisher.n_appended,
        "n_batches": batches[-1].number + 1,
        "n_adjustments": sum(each.said["n_adjustments"] for each in batches),
        "n_drivers_ended": n_ended,
        "ends": drivers.heard.ends,
        **verdict(feed.expected(), feed.delivered()),
        "faults": rows,
    }


@contextmanager
def _driven(arguments: list[str], logs: Path) -> Iterator[Drivers]:
    """Run drivers while the context lasts; show their last words if it fails."""
    drivers = Drivers(arguments, logs)
    try:
        yield drivers
    except BaseException:
        for driver in drivers.all:
            tail = driver.log.read_text(errors="replace")[-4_000:]
            print(f"--- driver {driver.number}\n{tail}", file=sys.stderr)
        print(f"--- ends: {drivers.heard.ends}", file=sys.stderr)
        raise
    finally:
        drivers.end()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--source", choices=("journal", "kafka"), default="journal")
    parser.add_argument("--kinds", default="python,executor,worker,driver,store,cut-5,cut-40,pause")
    parser.add_argument("--faults", type=int, default=8)
    parser.add_argument("--out", type=Path, help="append the line to this file, too")
    parser.add_argument("--logs", type=Path, help="where drivers work, and leave what they and Spark say")
    given = parser.parse_args()
    where = f"{os.environ['PS2STREAM_STORE']}/campaign-{given.seed}"
    faults = kinds_in_turn(given.kinds.split(","), given.faults, random.Random(given.seed))
    with tempfile.TemporaryDirectory(prefix="campaign-") as directory:
        feed: Feed
        if given.source == "kafka":
            feed = KafkaFeed.at(os.environ["PS2STREAM_KAFKA"], f"campaign-{given.seed}")
        else:
            feed = JournalFeed(Path(directory) / "journal", f"{where}/out")
        line = json.dumps(run(given.seed, faults, feed, where, given.logs or Path(directory)))
    if given.out:
        with given.out.open("a") as file:
            file.write(f"{line}\n")
    print(line)


if __name__ == "__main__":
    main()
