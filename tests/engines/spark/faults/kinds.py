"""The kinds of faults: what each does to a bed or to a driver, and how it is mended after a while."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from engines.spark.faults.drivers import LIMIT_S, CampaignError, Driver, Drivers
from engines.spark.faults.job import FENCED
from testbed import faults, network, processes
from testbed.bed import Bed, load
from testbed.layout import KAFKA, MASTER, STORE

#: Seconds that what was killed stays away.
_AWAY_S = (1.0, 8.0)
#: Seconds until a supervisor has seen that a driver is gone, or seems to be.
_UNSEEN_S = (0.0, 3.0)


@dataclass(slots=True)
class Fault:
    """A fault that was made; ``details`` say more of it, and of how it was mended."""

    kind: str
    member: str
    details: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Scene:
    """What faults are made in; ``background`` mends what takes a while."""

    bed: Bed
    drivers: Drivers
    random: random.Random
    background: ThreadPoolExecutor
    mending: list[Future[None]] = field(default_factory=list)

    def host_with(self, kind: str) -> str:
        """Return some host that has processes of a kind; wait for one where there is none."""
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            hosts = [member.name for member in self.bed.layout.hosts]
            if found := [host for host in hosts if faults.of_kind(self.bed, host, kind)]:
                return self.random.choice(found)
            time.sleep(0.1)
        raise CampaignError(f"no host has a process of kind {kind}")

    def mend(self, after_s: float, step: Callable[[], object]) -> None:
        """Mend something later, while the job goes on or tries to."""

        def run() -> None:
            time.sleep(after_s)
            step()

        self.mending.append(self.background.submit(run))

    @property
    def is_mended(self) -> bool:
        return all(each.done() for each in self.mending)

    def wait_until_mended(self) -> None:
        for each in self.mending:
            each.result()
        self.mending.clear()

    def start(self, member: str, *, empty: bool = False) -> None:
        """Start a member; which processes the others have may have changed since the bed was read."""
        faults.start(load(self.bed.description), member, empty=empty)


def kill_python(scene: Scene) -> Fault:
    """Kill one Python process of a host: one that runs tasks, or the one they are forked from."""
    host = scene.host_with("python")
    pids = sorted(faults.of_kind(scene.bed, host, "python"))
    processes.kill([scene.random.choice(pids)])
    return Fault("python", host)


def kill_executor(scene: Scene) -> Fault:
    host = scene.host_with("executor")
    faults.kill(scene.bed, host, "executor")
    return Fault("executor", host)


def kill_worker(scene: Scene) -> Fault:
    """Kill the process by which a host takes part in the cluster; executors end with it."""
    host = scene.host_with("executor")
    faults.kill(scene.bed, host, "worker")
    away_s = scene.random.uniform(*_AWAY_S)
    scene.mend(away_s, lambda: scene.start(host))
    return Fault("worker", host, {"away_s": round(away_s, 1)})


def kill_host(scene: Scene) -> Fault:
    """Kill all that runs on a host; it comes back, now and then with an empty disk."""
    host = scene.host_with("executor")
    faults.kill(scene.bed, host)
    away_s, empty = scene.random.uniform(*_AWAY_S), scene.random.random() < 0.5
    scene.mend(away_s, lambda: scene.start(host, empty=empty))
    return Fault("host", host, {"away_s": round(away_s, 1), "empty": empty})


def kill_service(scene: Scene, name: str) -> Fault:
    faults.kill(scene.bed, name)
    away_s = scene.random.uniform(*_AWAY_S)
    scene.mend(away_s, lambda: scene.start(name))
    return Fault(name, name, {"away_s": round(away_s, 1)})


def kill_driver(scene: Scene) -> Fault:
    scene.drivers.current.kill()
    time.sleep(scene.random.uniform(*_UNSEEN_S))
    scene.drivers.start()
    return Fault("driver", "driver")


def kill_jvm(scene: Scene) -> Fault:
    """Kill the JVM of the driver: what is left of the driver ends by itself, and is started again."""
    scene.drivers.current.kill_jvm()
    return Fault("jvm", "driver")


def cut(scene: Scene, seconds: float, member: str | None = None) -> Fault:
    """Pull the cable of a host, or of a service, for a while."""
    name = member or scene.host_with("executor")
    network.unplug(scene.bed.member(name))
    scene.mend(seconds, lambda: network.plug(scene.bed.member(name)))
    return Fault(f"{'' if member is None else member + '-'}cut-{seconds:g}", name)


def pause_driver(scene: Scene) -> Fault:
    """Stop a driver as it stands; another takes over; the first goes on, and must see that it is over."""
    first = scene.drivers.current
    first.pause()
    time.sleep(scene.random.uniform(*_UNSEEN_S))
    scene.drivers.start(elsewhere=True)
    fault = Fault("pause", "driver")
    scene.mend(0.0, lambda: _resume(scene, first, fault))
    return fault


def _resume(scene: Scene, first: Driver, fault: Fault) -> None:
    heard, until = scene.drivers.heard, time.monotonic() + LIMIT_S
    while not any(batch.driver > first.number for batch in heard.batches) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(scene.random.uniform(0.0, 5.0))
    n_finished = sum(batch.driver == first.number for batch in heard.batches)
    resumed = time.monotonic()
    first.go_on()
    code = first.wait()
    n_late = sum(batch.driver == first.number for batch in heard.batches) - n_finished
    fault.details |= {
        "is_fenced": code == FENCED and n_late == 0,
        "first_ended": heard.ends.get(first.number, f"exit code {code}"),
        "first_ended_after_s": round(time.monotonic() - resumed, 1),
    }


def nothing(scene: Scene) -> Fault:
    """Do nothing: what going on takes anyway."""
    return Fault("none", "")


KINDS: dict[str, Callable[[Scene], Fault]] = {
    "none": nothing,
    "python": kill_python,
    "executor": kill_executor,
    "worker": kill_worker,
    "host": kill_host,
    "driver": kill_driver,
    "jvm": kill_jvm,
    "pause": pause_driver,
    "cut-5": lambda scene: cut(scene, 5.0),
    "cut-40": lambda scene: cut(scene, 40.0),
    "store": lambda scene: kill_service(scene, STORE),
    "store-cut-40": lambda scene: cut(scene, 40.0, STORE),
    "master": lambda scene: kill_service(scene, MASTER),
    "kafka": lambda scene: kill_service(scene, KAFKA),
}


@contextmanager
def scene_of(bed: Bed, drivers: Drivers, rng: random.Random) -> Iterator[Scene]:
    with ThreadPoolExecutor(4, "mending") as background:
        yield Scene(bed, drivers, rng, background)
