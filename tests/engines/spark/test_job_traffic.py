"""What a batch on several hosts asks of the store, counted by the server and told by driver and tasks.

No session: partitions are run one after the other in this process, each as the host that it is on.
"""

from __future__ import annotations

import contextlib
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.streams import SETTINGS, batches_of, plan_for, random_stream
from ps2stream.engines.batch_tally import tally_batch
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.spark import job as job_module
from ps2stream.engines.spark.job import MicroBatchJob
from ps2stream.engines.spark.pinned_shuffle import Sent
from ps2stream.engines.tally import Tally
from ps2stream.journal import Journal
from ps2stream.model.matches import Match
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.sources.journal_range import journal_ranges
from ps2stream.state.state import State
from ps2stream.testing import oracle
from s3_server import BUCKET, S3Server
from state.drivers import Claim

N_HOSTS, N_WORKERS, N_DISPATCHERS = 3, 6, 2
N_BATCHES = 6


@dataclass(frozen=True, slots=True)
class Partitions:
    """As much of an RDD as a batch needs; tasks run when it is collected."""

    parts: Callable[[], Iterator[list[Any]]]
    hosts: Hosts

    def mapPartitionsWithIndex(self, stage: Any) -> Partitions:  # noqa: N802  # as Spark calls it
        return Partitions(lambda: self._run(pickle.dumps(stage)), self.hosts)

    def _run(self, sent: bytes) -> Iterator[list[Any]]:
        for number, part in enumerate(self.parts()):
            with self.hosts.on(number):
                yield list(pickle.loads(sent)(number, part))

    def collect(self) -> list[Any]:
        return [each for part in self.parts() for each in part]


class Hosts:
    """Stand for a session, its context and the shuffle; partition n is on host n modulo their number."""

    def __init__(self, base: Path) -> None:
        self._base = base

    @property
    def sparkContext(self) -> Hosts:  # noqa: N802
        return self

    def parallelize(self, nothing: list[object], n_parts: int) -> Partitions:
        return Partitions(lambda: iter([[] for _ in range(n_parts)]), self)

    def send(self, packets: Partitions) -> Partitions:
        def received() -> Iterator[list[Sent]]:
            inboxes: list[list[Sent]] = [[] for _ in range(N_WORKERS)]
            for worker, packet in packets.collect():
                inboxes[worker].append((worker, packet))
            return iter(inboxes)

        return Partitions(received, self)

    @contextlib.contextmanager
    def on(self, number: int) -> Iterator[None]:
        """Be a process of the host of a partition."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PS2STREAM_LOCAL_DIR", str(self._base / f"h{number % N_HOSTS}"))
            yield


@dataclass(slots=True)
class Run:
    """A job on a journal, and what each of its batches asked of the store."""

    job: MicroBatchJob
    journal: Path
    ends: list[int]  # of the packets of the journal
    done: list[BatchDone]
    events: pa.RecordBatch

    def process(self, batch_id: int) -> None:
        """Process two packets of the journal."""
        after, _, upto = [0, *self.ends][2 * batch_id : 2 * batch_id + 3]
        self.job.process(tuple(journal_ranges(self.journal, after, upto, N_DISPATCHERS)), batch_id)

    def matches(self) -> list[Match]:
        found = ParquetSink.at(self.job.sink.store.location()).matches  # type: ignore[attr-defined]
        tables = [pq.read_table(pa.BufferReader(found.get(key))) for key in found.list()]
        return sorted(Match(**row) for table in tables for row in table.to_pylist())


@pytest.fixture
def run(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    events = random_stream(100 * N_BATCHES, 5, invalid_share=0.0)
    monkeypatch.setenv("PS2STREAM_LOCAL_DIR", str(tmp_path / "driver"))
    settings = replace(SETTINGS, n_workers=N_WORKERS, n_dispatchers=N_DISPATCHERS, batch_events=100)
    store, hosts, done = s3.store(), Hosts(tmp_path), list[BatchDone]()
    monkeypatch.setattr(job_module, "PinnedShuffle", lambda context, n_workers: hosts)
    monkeypatch.setattr(job_module, "wait_for_slots", lambda context, n_workers: n_workers)
    state = State.among_hosts(store).taken_over(Claim(store))  # type: ignore[arg-type]
    state = state.create(plan_for(events, settings), settings).open(settings)
    sink = ParquetSink(store.under("out"))
    job = MicroBatchJob(hosts, state, settings, sink, done.append)  # type: ignore[arg-type]
    job.start()
    with Journal.open(tmp_path / "journal", create=True) as journal:
        ends = [journal.append_ordered(batch).position for batch in batches_of(events, 50)]
    return Run(job, tmp_path / "journal", ends, done, events)


def kinds(requests: Iterable[tuple[str, str]]) -> Counter[str]:
    """Count requests by what they are for."""
    counts: Counter[str] = Counter()
    for method, path in requests:
        name = path.rpartition("/")[2]
        if path.endswith(f"/{BUCKET}"):
            counts["deletes" if method == "POST" else "lists"] += 1
        elif "/spool/" in path:
            counts[f"{method} spool"] += 1
        elif "/out/" in path:
            counts[f"{method} sink"] += 1
        else:
            counts[f"{method} {name.partition('-')[0] if '-' in name else 'epoch'}"] += 1
    return counts


def test_a_batch_asks_the_store_for_what_is_new_and_for_safety_and_for_nothing_else(
    run: Run, s3: S3Server
) -> None:
    counted = []
    for batch_id in range(N_BATCHES):
        with s3.counting() as requests:
            run.process(batch_id)
        counted.append((kinds(requests), len(requests)))
    assert run.matches() == sorted(oracle.run(pa.table(run.events)).matches)
    for counts, n_requests in counted[1:]:  # the first one also fetches the plan
        n_sink = counts.pop("PUT sink")
        assert n_sink <= N_WORKERS
        assert counts == {
            "PUT spool": 3 * N_DISPATCHERS,
            "GET spool": 2 * N_DISPATCHERS,  # by dispatchers; the driver has the journal
            "lists": 1,  # of the spool, to delete it
            "deletes": 1,
            "PUT batch": 1,
            "GET batch": N_HOSTS,  # whatever the number of workers
            "PUT manifest": 1,
            "PUT ledger": 1,  # finished
            # For safety: a look behind each root, and each worker's before it writes its matches.
            "GET epoch": 2 + N_WORKERS,
            "GET manifest": N_WORKERS,
            "GET ledger": N_WORKERS,
        }
        assert n_requests <= 5 * N_DISPATCHERS + 4 * N_WORKERS + N_HOSTS + 8


def test_driver_and_tasks_tell_what_the_server_was_asked(run: Run, s3: S3Server) -> None:
    tally = Tally.of(N_WORKERS, N_DISPATCHERS)
    run.process(0)
    with s3.counting() as requests:
        for batch_id in range(1, 4):
            run.process(batch_id)
    tasks_too = run.done[1:]
    for done in tasks_too:
        tally_batch(tally, done)
    told, methods = tally.store_traffic(), Counter(method for method, _ in requests)
    assert told["batches"] == 3
    # Tasks ran in this process, so the driver's own count has all of it.
    n_lists = sum(path.endswith(f"/{BUCKET}") for method, path in requests if method == "GET")
    driver = told["driver"]
    assert driver["puts"] == methods["PUT"]
    assert driver["gets"] + driver["lists"] == methods["GET"]
    assert driver["lists"] == n_lists == 3
    assert driver["deletes"] == methods["POST"] == 3
    tasks = told["tasks"]
    assert tasks["puts"] == sum("/out/" in path for method, path in requests if method == "PUT")
    assert tasks["gets"] == methods["GET"] - n_lists - 3 * 2, "but for the driver's looks behind its roots"
    assert 0 < tasks["bytes_in"] <= driver["bytes_in"]
    assert 0 < tasks["bytes_out"] < driver["bytes_out"]
    assert tasks["lists"] == tasks["deletes"] == 0
    for name, number in asdict(tally.driver_traffic + tally.task_traffic).items():
        assert told[name] == number
        assert told["per_batch"][name] == number / 3
