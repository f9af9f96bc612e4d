"""The replica of a host routes and names as the registrar does, whatever was decided or has happened."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.deployments import Deployment, local_stream, random_plan
from engines.streams import TOKENIZER, batches_of, publications_of
from ps2stream.registry.log import SubscriptionLog
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.registrar import Registrar
from ps2stream.state.host_replica import HostReplica, Replica
from ps2stream.state.plans import Plans
from ps2stream.store.contract import Store
from ps2stream.store.memory import MemoryStore


class Job:
    """A registrar whose log and plans are in a store."""

    def __init__(self, seed: int, store: Store) -> None:
        self.rng = random.Random(seed)
        self.log, self.plans = SubscriptionLog(store.under("log")), Plans(store.under("plans"))
        self.deployment = Deployment(random_plan(self.rng))
        self.batch_id = -1

    @property
    def registrar(self) -> Registrar:
        return self.deployment.registrar

    def process(self, batch: pa.RecordBatch, *, disturb: bool = True) -> None:
        if disturb:
            self.deployment.disturb(self.rng)
        segment = self.deployment.process(batch)
        self.batch_id += 1
        for plan in self.deployment.plans.values():
            self.plans.add(plan)
        self.log.append(self.batch_id, segment, self.registrar.plan_numbers)

    def snapshot(self) -> None:
        self.log.snapshot(self.batch_id, self.deployment.snapshot(), self.registrar.plan_numbers)

    def replica(self, directory: Path) -> HostReplica:
        return HostReplica(directory, self.log, self.plans)

    def asked(self, replica: HostReplica) -> Replica:
        return replica.at(self.batch_id, self.registrar.plan_numbers)


def assert_alike(job: Job, replica: Replica, publications: pa.RecordBatch) -> None:
    """Routes all that the registrar routes, each alike, and names all that lives."""
    sent = Dispatcher(job.registrar.grid_ts, TOKENIZER).dispatch(publications).packets
    also = Dispatcher(replica.grid_ts, TOKENIZER).dispatch(publications).packets
    for worker, packet in sent.items():
        mine = {row["id"]: row for row in also[worker].to_pylist()}
        for row in packet.to_pylist():
            probes = mine[row["id"]]["probes"]
            # What has ended may be looked up in vain; all else is marked alike.
            assert [a | b for a, b in zip(row["probes"], probes, strict=True)] == probes
    live = job.registrar.registry.live_seqs()
    assert replica.registry.ids(live).equals(job.registrar.registry.ids(live))


@given(st.integers(0, 1 << 32))
@settings(max_examples=15, deadline=None)
def test_a_replica_follows_the_log_through_moves_switches_and_unions(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    directory = tmp_path_factory.mktemp("host")
    job, events = Job(seed, MemoryStore()), local_stream(120, seed)
    replica = job.replica(directory)
    for batch in batches_of(events, 15):
        if job.batch_id >= 0 and job.rng.random() < 0.2:
            job.snapshot()  # of the batch before: what ended in it is not needed any more
        job.process(batch)
        if job.rng.random() < 0.7:  # a host need not be asked in every batch
            assert_alike(job, job.asked(replica), publications_of(events))
        if job.rng.random() < 0.1:
            shutil.rmtree(directory, ignore_errors=True)  # nobody may have asked yet
    assert_alike(job, job.asked(replica), publications_of(events))


def directories(host: Path) -> list[str]:
    return sorted(path.name for path in host.glob("replica-*"))


def test_a_replica_goes_on_from_where_it_is_and_is_built_anew_only_where_it_must(tmp_path: Path) -> None:
    job, (first, second, third, fourth, fifth) = Job(1, MemoryStore()), batches_of(local_stream(100, 1), 20)
    host = tmp_path / "host"
    replica = job.replica(host)
    job.process(first, disturb=False)
    job.asked(replica)
    (built,) = directories(host)
    for batch in (second, third):
        job.process(batch, disturb=False)
        job.asked(replica)
        job.asked(job.replica(host))  # of another process
        assert directories(host) == [built]
    # A process that died while it changed the files left no mark.
    (host / "clean").unlink()
    job.asked(replica)
    (anew,) = directories(host)
    assert anew != built
    # A file that was cut short.
    largest = max((host / anew).rglob("*.array"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:16])
    job.process(fourth, disturb=False)
    assert_alike(job, job.asked(replica), publications_of(fourth))
    (third_one,) = directories(host)
    assert third_one != anew
    # Another boot: pages may not have reached the disk.
    (host / "clean").write_text((host / "clean").read_text().replace('"boot": "', '"boot": "x'))
    job.process(fifth, disturb=False)
    assert_alike(job, job.asked(replica), publications_of(fifth))
    assert directories(host) != [third_one]


def test_what_a_task_still_reads_stays_as_it_is_when_a_replica_is_built_anew(tmp_path: Path) -> None:
    job, (first, second) = Job(2, MemoryStore()), batches_of(local_stream(80, 2), 40)
    replica = job.replica(tmp_path)
    job.process(first, disturb=False)
    read = job.asked(replica)
    live = job.registrar.registry.live_seqs()
    names = read.registry.ids(live).to_pylist()
    (tmp_path / "clean").unlink()
    job.process(second, disturb=False)
    job.asked(replica)
    assert read.registry.ids(live).to_pylist() == names
    assert len(np.unique(live)) == len(names) > 5
