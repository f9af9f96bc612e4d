"""The kinds of faults that are made to resident roles, in a bed or on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from brokers import free_port
from engines.spark.faults.drivers import LIMIT_S, CampaignError
from engines.spark.faults.kinds import KINDS, Fault, Scene, cut, kill_driver, kill_jvm, nothing
from engines.spark.processes import kill
from ps2stream.kafka.places import RoleName
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import TRANSACTION_MS, KafkaWire
from testbed import faults, lone_broker, network, processes
from testbed.layout import KAFKA

#: Seconds that a role is stopped: shorter and longer than brokers wait for its transaction.
_PAUSE_S = (2.0, 22.0)
#: Seconds that a disk is full.
_FULL_S = (1.0, 8.0)
_DISK = "512m"
_BALLAST = "ballast"
#: Seconds that a host stands still if no others take over from its roles.
_MOST_STILL_S = 120.0
#: Seconds that Python processes go on before the executors that they belong to.
_AHEAD_S = 3.0


@dataclass(slots=True, kw_only=True)
class RoleScene(Scene):
    """What faults are made in: a bed, or a broker at a port and the processes of a driver."""

    topics: RoleTopics
    roles: list[RoleName]
    port: int | None = None
    #: Set when all roles have gone on after the fault.
    has_gone_on: threading.Event = field(default_factory=threading.Event)

    def role_processes(self) -> list[int]:
        """Find the processes that run roles; wait for some where there are none."""
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            if self.port is not None:
                found = self.drivers.current.task_processes()
            else:
                found = [pid for member in self.bed.layout.hosts for pid in self.roles_on(member.name)]
            if found:
                return sorted(found)
            time.sleep(0.1)
        raise CampaignError("no process runs a role")

    def roles_on(self, host: str) -> list[int]:
        """Find the processes of roles on a host of the bed: those that were forked from another."""
        pids = faults.of_kind(self.bed, host, "python")
        return [pid for pid in pids if processes.parent(pid) in pids]


def kill_role(scene: RoleScene) -> Fault:
    kill(scene.random.choice(scene.role_processes()))
    return Fault("python", "")


def pause_role(scene: RoleScene) -> Fault:
    """Stop a role as it stands; when it goes on its transaction may be aborted, or another in its place."""
    pid = scene.random.choice(scene.role_processes())
    seconds = scene.random.uniform(*_PAUSE_S)
    _signal([pid], signal.SIGSTOP)
    scene.mend(seconds, lambda: _signal([pid], signal.SIGCONT))
    return Fault("role-pause", "", {"paused_s": round(seconds, 1)})


def usurp(scene: RoleScene) -> Fault:
    """Stop all roles; others write in their place; the first go on, and nothing that they write may count."""
    pids = scene.role_processes()
    # Longer than a transaction now and then: brokers have aborted it before anybody has taken over.
    seconds = scene.random.uniform(0.0, 1.5 * TRANSACTION_MS / 1000)
    _signal(pids, signal.SIGSTOP)

    def take_over() -> None:
        wires = []
        try:
            for role in scene.roles:
                wires.append(KafkaWire(scene.topics, role))
                if note := wires[-1].notes(role.kind).get(role.number):
                    wires[-1].commit([], note)
        finally:
            _signal(pids, signal.SIGCONT)
        scene.has_gone_on.wait(LIMIT_S)
        for wire in wires:
            wire.close()

    scene.mend(seconds, take_over)
    return Fault("usurped", "", {"paused_s": round(seconds, 1)})


def pause_host(scene: RoleScene) -> Fault:
    """Stop all that runs on a host until its roles run elsewhere; when it goes on, each is there twice."""
    host = scene.host_with("executor")
    pids = processes.inside(scene.bed.member(host).namespace)
    zombies = scene.roles_on(host)
    paused, fault = time.monotonic(), Fault("host-pause", host, {"n_zombies": len(zombies)})
    _signal(pids, signal.SIGSTOP)

    def go_on() -> None:
        fault.details["had_successors"] = scene.has_gone_on.wait(_MOST_STILL_S)
        fault.details["paused_s"] = round(time.monotonic() - paused, 1)
        # An executor is told that it is given up, and ends: what its roles do then, they do before.
        _signal(zombies, signal.SIGCONT)
        time.sleep(_AHEAD_S)
        _signal(pids, signal.SIGCONT)

    scene.mend(scene.random.uniform(0.0, 3.0), go_on)
    return fault


def sever(scene: RoleScene, seconds: float) -> Fault:
    """Cut the link between a host and the broker, and no other: Spark does not notice."""
    host = scene.host_with("executor")
    ends = scene.bed.member(KAFKA), scene.bed.member(host)
    network.sever(*ends)
    scene.mend(seconds, lambda: network.rejoin(*ends))
    return Fault(f"link-{seconds:g}", host)


def kill_broker(scene: RoleScene) -> Fault:
    assert scene.port is not None
    port, away_s = scene.port, scene.random.uniform(0.0, 4.0)
    lone_broker.kill(port)
    scene.mend(away_s, lambda: lone_broker.up(port, data_of(port)))
    return Fault("kafka", "", {"away_s": round(away_s, 1)})


def fill_disk(scene: RoleScene) -> Fault:
    """Leave the broker no byte to write to, which ends it; it comes back when there is space again."""
    assert scene.port is not None
    port, full_s = scene.port, scene.random.uniform(*_FULL_S)
    ballast = data_of(port) / _BALLAST
    if not ballast.parent.is_mount():
        raise CampaignError(
            f"{ballast.parent} must be a disk of its own to be filled; only root can make one"
        )
    _fill(ballast)
    fault = Fault("disk-full", "", {"full_s": round(full_s, 1)})

    def make_space() -> None:
        fault.details["broker_ended"] = not lone_broker.runs(port)
        ballast.unlink()
        lone_broker.kill(port)
        lone_broker.up(port, data_of(port))

    scene.mend(full_s, make_space)
    return fault


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass


def _signal(pids: Iterable[int], signum: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


RoleKind = Callable[[RoleScene], Fault]

LOCAL_KINDS: dict[str, RoleKind] = {
    "none": nothing,
    "python": kill_role,
    "role-pause": pause_role,
    "usurped": usurp,
    "driver": kill_driver,
    "jvm": kill_jvm,
    "kafka": kill_broker,
    "disk-full": fill_disk,
}
BED_KINDS: dict[str, RoleKind] = {
    **KINDS,
    "role-pause": pause_role,
    "usurped": usurp,
    "host-pause": pause_host,
    "link-5": lambda scene: sever(scene, 5.0),
    "link-25": lambda scene: sever(scene, 25.0),
    "kafka-cut-5": lambda scene: cut(scene, 5.0, KAFKA),
    "kafka-cut-25": lambda scene: cut(scene, 25.0, KAFKA),
}


def data_of(port: int) -> Path:
    """Return where the broker of a port has its data."""
    return Path(tempfile.gettempdir()) / f"roles-campaign-{port}"


@contextlib.contextmanager
def broker() -> Iterator[int]:
    """Run a broker of one's own, that may be killed and starved, while the context lasts."""
    port = free_port()
    with _disk(data_of(port)):
        lone_broker.up(port, data_of(port))
        try:
            yield port
        finally:
            lone_broker.down(port)


@contextlib.contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Make a directory while the context lasts; for root, as a small disk."""
    path.mkdir()
    is_disk = os.geteuid() == 0 and _succeeds(
        "mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(path)
    )
    try:
        yield
    finally:
        if is_disk:
            _succeeds("umount", "--lazy", str(path))
        shutil.rmtree(path, ignore_errors=True)


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
