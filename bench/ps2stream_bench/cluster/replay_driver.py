"""A driver in a bed: replay an event log; count processor time of all processes and bytes of all cables.

    python -m ps2stream_bench.cluster.replay_driver '{"events": FILE, ...}'      # prints a list of one row

With ``"lose": true`` the host of the largest worker is killed between two batches, amid the matching.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.engines.spark.jvm import end_jvm
from ps2stream.engines.spark.replay import replay_microbatch, shared_files
from ps2stream.engines.spark.session import own_session
from ps2stream.engines.tally import Tally, WorkerTally
from ps2stream.sources.event_log import EventLog
from ps2stream_bench.cluster.members import Member, members_here
from ps2stream_bench.cluster.processor_time import KINDS, OUTSIDE, ProcessorTimes, Seconds, Watch, since
from ps2stream_bench.cluster.traffic import Traffic, traffic_of
from ps2stream_bench.engines import fingerprint
from ps2stream_bench.results import Row

#: Of the publications, those that are matched before a host is lost.
_LOST_AFTER = 0.3


class Moment(NamedTuple):
    """How far a run was, and what it had used by then."""

    at: float
    n_events: int
    n_batches: int
    seconds: Seconds
    traffic: dict[str, Traffic]


class Loss(NamedTuple):
    """The loss of a host: after how many batches, and how its largest worker stood then."""

    n_batches: int
    worker: WorkerTally


@dataclass(slots=True)
class Course:
    """The course of a run: the moment when loading ended, and the host that was lost."""

    members: tuple[Member, ...]
    times: ProcessorTimes
    asked: dict[str, Any]
    loaded: Moment | None = None
    lost: Loss | None = None

    def on_progress(self, tally: Tally) -> None:
        """Take the last moment before anything was matched; then, if asked to, lose a host."""
        if self.loaded is None or not tally.n_publications:
            self.loaded = self.now(tally)
        enough = _LOST_AFTER * self.asked["publications"]
        if self.asked.get("lose") and not self.lost and tally.n_publications >= enough:
            # Copied, as it goes on counting: every worker is built once, when its first batch comes.
            self.lost = Loss(len(tally.latencies), replace(_largest(tally)))
            command = [sys.executable, self.asked["testbed"], "cluster", "kill", self.lost.worker.host]
            subprocess.run(command, check=True, stdout=sys.stderr)

    def now(self, tally: Tally) -> Moment:
        return Moment(
            time.monotonic(),
            tally.n_events,
            len(tally.latencies),
            self.times.read(),
            traffic_of(self.members),
        )


def main() -> None:
    """Replay, and print the row."""
    asked = json.loads(sys.argv[1])
    members = members_here()
    times = ProcessorTimes(members, os.getpid())
    with tempfile.TemporaryDirectory(prefix="ps2stream-bench-") as scratch, Watch(times):
        row = _replayed(asked, Course(members, times, asked), Path(scratch))
    print(json.dumps([row]))


def _replayed(asked: dict[str, Any], course: Course, home: Path) -> Row:
    settings = Settings(
        n_workers=asked["workers"],
        n_dispatchers=asked["dispatchers"],
        batch_events=asked["batch_events"],
        stop_words=tuple(asked["stop_words"]),
        adjustment=AdjustmentSettings(scope="off"),
    )
    master, store = os.environ["PS2STREAM_MASTER"], os.environ["PS2STREAM_STORE"]
    try:
        with (
            own_session("ps2stream-bench", log=home / "spark.log", master=master) as spark,
            shared_files(home, store, home / "out") as where,
        ):
            done = replay_microbatch(
                spark, EventLog(Path(asked["events"])), where, settings, course.on_progress
            )
            ended = course.now(done.tally)
    finally:
        end_jvm()
    matches = pq.read_table(home / "out" / "matches", columns=["publication_seq", "subscription_seq"])
    report = done.tally.report(done.wall_s)
    flat = {name: value for name, value in report.items() if isinstance(value, int | float)}
    assert course.loaded is not None
    return {
        **flat,
        "matching_tuples_per_s": report["matching_tuples_per_s"],
        "n_matches": matches.num_rows,
        "fingerprint": fingerprint(matches),
        "n_moves": sum(worker.n_moves for worker in done.tally.workers),
        **between(course.loaded, ended),
        **after_the_loss(course.lost, done.tally),
    }


def between(loaded: Moment, ended: Moment) -> Row:
    """Return what matching took: seconds by kind and by place, bytes a batch."""
    n_batches = max(ended.n_batches - loaded.n_batches, 1)
    used = since(loaded.seconds, ended.seconds)
    kinds = {kind: sum(each for (_, of), each in used.items() if of == kind) for kind in KINDS}
    places = dict.fromkeys((*ended.traffic, OUTSIDE), 0.0)
    for (place, _), each in used.items():
        places[place] += each
    row: Row = {
        "matching_s": ended.at - loaded.at,
        "matching_events": ended.n_events - loaded.n_events,
        "matching_batches": n_batches,
        "cpu_s": sum(kinds.values()),
        **{f"cpu_s of {kind}": each for kind, each in kinds.items()},
        **{f"cpu_s on {place}": each for place, each in places.items()},
    }
    for name, after in ended.traffic.items():
        before = loaded.traffic[name]
        row[f"bytes_to {name}"] = (after.to_bytes - before.to_bytes) / n_batches
        row[f"bytes_from {name}"] = (after.from_bytes - before.from_bytes) / n_batches
    row["loading_bytes_to store"] = loaded.traffic["store"].to_bytes
    row["loading_bytes_from store"] = loaded.traffic["store"].from_bytes
    return row


def after_the_loss(lost: Loss | None, tally: Tally) -> Row:
    """Return what became of the largest worker of the host that was lost, if one was."""
    if lost is None:
        return {}
    worker, before = _largest(tally), lost.worker
    usual = sorted(seconds for seconds, _ in tally.latencies[: lost.n_batches])
    after = [seconds for seconds, _ in tally.latencies[lost.n_batches :]]
    if not after:
        raise ValueError(f"a batch has to come after the loss of {before.host}; it came after the last")
    return {
        "lost": before.host,
        "worker_subscriptions": before.n_subscriptions,
        "worker_bytes": before.n_bytes,
        "worker_moves": worker.n_moves - before.n_moves,
        "n_rebuilds": worker.n_rebuilds - before.n_rebuilds,
        "rebuild_s": worker.rebuild_s - before.rebuild_s,
        "usual_batch_s": usual[len(usual) // 2],
        "longest_batch_s": max(after),
    }


def _largest(tally: Tally) -> WorkerTally:
    return max(tally.workers, key=lambda worker: worker.n_subscriptions)


if __name__ == "__main__":
    main()
