"""A campaign of faults on resident roles: clients send at a steady pace while one thing after the other dies.

    ./dev cluster run --cores 4 --memory 2g --kafka -- \\
        python tests/engines/spark/faults/roles_campaign.py --seed 1 --order arrival
    python tests/engines/spark/faults/roles_campaign.py --seed 2 --order given     # Spark and a broker here

Faults come as in ``campaign.py``. The job has gone on when every role has read beyond what there was at the
fault. At the end all that was delivered is compared with the oracle (``--order given``), or judged by the
checker (``--order arrival``). With ``--delivery at-least-once`` matches may come again. Writes
one line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from engines.spark.faults.campaign import kinds_in_turn
from engines.spark.faults.drivers import LIMIT_S, CampaignError, Drivers
from engines.spark.faults.role_feeds import ArrivalFeed, GivenFeed, RoleFeed
from engines.spark.faults.role_kinds import BED_KINDS, LOCAL_KINDS, RoleKind, RoleScene, broker, data_of
from engines.spark.faults.roles_job import AT_LEAST_ONCE
from ps2stream.config import Settings
from ps2stream.engines.spark.resident_tasks import roles_of
from ps2stream.errors import BrokerError
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.ends import Ends
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import read_notes
from ps2stream.kafka.topics import Topics
from ps2stream.resident.idleness import RolesIdleness
from ps2stream.resident.notes import DispatcherNote, RegistrarNote, WorkerNote, note_from_bytes
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, WORKER
from testbed import lone_broker
from testbed.bed import HANDLE, load

_N_WORKERS, _N_DISPATCHERS = 3, 2
SCRIPT = Path(__file__).with_name("roles_job.py")
#: Seconds from the end of one fault to the next.
_QUIET_S = (0.5, 3.0)
_LOOK_S = 0.05


@dataclass(slots=True)
class Progress:
    """How far roles are, by their notes."""

    topics: RoleTopics
    ends: Ends = field(init=False)

    def __post_init__(self) -> None:
        self.ends = Ends(self.topics.topics.kafka)

    def wait(self, tend: Callable[[], None]) -> tuple[float, float]:
        """Return when the first worker, and when all roles, have read beyond what there is now."""
        until = time.monotonic() + LIMIT_S
        own = self.topics.topics
        updates = self._ends(own.updates, 1, tend)
        publications = self._ends(own.publications, own.n_partitions(own.publications), tend)
        while not self._are_read(updates[0], publications):
            self.look(tend, until)
        routed = self._ends(self.topics.name("routed"), self.topics.n_workers, tend)
        first = 0.0
        while True:
            notes = read_notes(self.topics, self.ends, WORKER)
            done = [note_from_bytes(WorkerNote, notes.get(number)).routed for number in range(len(routed))]
            # Beyond, and not up to: the last offset may be the mark of a transaction.
            are_on = [offset > end for offset, end in zip(done, routed, strict=True)]
            if any(are_on) and not first:
                first = time.monotonic()
            if all(are_on):
                return first, time.monotonic()
            self.look(tend, until)

    def _ends(self, topic: str, n: int, tend: Callable[[], None]) -> list[int]:
        while True:
            with contextlib.suppress(BrokerError):
                return self.ends.last(topic, n)
            tend()

    def _are_read(self, updates: int, publications: list[int]) -> bool:
        said = read_notes(self.topics, self.ends, REGISTRAR).get(0)
        done = [0] * len(publications)
        for note in read_notes(self.topics, self.ends, DISPATCHER).values():
            for partition, offset in note_from_bytes(DispatcherNote, note).publications.items():
                done[partition] = max(done[partition], offset)
        return note_from_bytes(RegistrarNote, said).updates >= updates and all(
            offset >= end for offset, end in zip(done, publications, strict=True)
        )

    def look(self, tend: Callable[[], None], until: float = float("inf")) -> None:
        tend()
        if time.monotonic() > until:
            raise CampaignError(f"the roles have not gone on after {LIMIT_S:.0f} s")
        time.sleep(_LOOK_S)


def one_fault(
    kind: str, kinds: dict[str, RoleKind], scene: RoleScene, progress: Progress, began: float
) -> dict[str, Any]:
    """Make a fault and wait until all roles have gone on and all is whole again; return a row."""
    time.sleep(scene.random.uniform(*_QUIET_S))
    made_at, n_drivers = time.monotonic(), len(scene.drivers.all)
    scene.has_gone_on.clear()
    fault = kinds[kind](scene)
    first, all_on = progress.wait(scene.drivers.tend)
    scene.has_gone_on.set()
    # Roles go on without their driver: the next one may end, and be needed, after that.
    while not scene.is_mended:
        progress.look(scene.drivers.tend)
    scene.wait_until_mended()
    row = {
        "kind": kind,
        "member": fault.member,
        "at_s": round(made_at - began, 2),
        "to_go_on_s": round(all_on - made_at, 2),
        "first_worker_s": round(first - made_at, 2),
        "n_drivers": len(scene.drivers.all) - n_drivers,
        **fault.details,
    }
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


class Campaign(NamedTuple):
    """Which faults, in which order of events; drivers leave what they say in ``logs``."""

    seed: int
    order: str
    kinds: list[str]
    within_s: float
    logs: Path
    is_exact: bool = True


def run(campaign: Campaign, topics: Topics, where: str, port: int | None) -> dict[str, Any]:
    """Run a campaign in the bed of the environment; with a broker's port, on this machine."""
    data = data_of(port) if port is not None else load(Path(os.environ[HANDLE])).broker_data
    seed, order, chosen, within_s, logs, is_exact = campaign
    rng = random.Random(seed)
    topics.create()
    feed: RoleFeed = (GivenFeed if order == "given" else ArrivalFeed)(topics, seed)
    arguments = [where, str(seed), topics.kafka.servers, topics.prefix, order]
    arguments += [str(_N_WORKERS), str(_N_DISPATCHERS), "hybrid", *([] if is_exact else [AT_LEAST_ONCE])]
    drivers = Drivers(arguments, logs, SCRIPT)
    try:
        feed.start()
        role_topics = RoleTopics(topics, _N_WORKERS)
        while not drivers.heard.batches:
            drivers.tend()
            time.sleep(_LOOK_S)
        progress = Progress(role_topics)
        progress.wait(drivers.tend)
        began = time.monotonic()
        with _scene(drivers, rng, role_topics, port) as scene:
            kinds = BED_KINDS if port is None else LOCAL_KINDS
            rows: list[dict[str, Any]] = []
            while len(rows) < len(chosen) and time.monotonic() - began < within_s:
                rows.append(one_fault(chosen[len(rows)], kinds, scene, progress, began))
        _wait_for_trimming(role_topics, progress, drivers)
        feed.stop()
        idleness, until = RolesIdleness(role_topics), time.monotonic() + LIMIT_S
        while not idleness.is_idle():
            progress.look(drivers.tend, until)
        drivers.current.finish()
        code = drivers.current.wait()
        if code:
            raise CampaignError(f"the last driver ended with exit code {code}: {drivers.heard.ends}")
    except BaseException:
        for driver in drivers.all:
            tail = driver.log.read_text(errors="replace")[-4_000:]
            print(f"--- driver {driver.number}\n{tail}", file=sys.stderr)
        raise
    finally:
        drivers.end()
    n_adjustments = note_from_bytes(
        RegistrarNote, read_notes(role_topics, Ends(topics.kafka), REGISTRAR).get(0)
    ).n_adjustments
    verdict = feed.verdict(data, is_exact=is_exact)
    if not verdict["as_the_oracle"]:
        shutil.copytree(data, logs / "broker", dirs_exist_ok=True)
    return {
        "engine": "realtime",
        "order": order,
        **({} if is_exact else {"delivery": AT_LEAST_ONCE}),
        "where": "three hosts" if port is None else "one host",
        "seed": seed,
        "n_adjustments": n_adjustments,
        "ends": drivers.heard.ends,
        "n_trimmed": _n_trimmed(role_topics),
        **verdict,
        "faults": rows,
    }


def _wait_for_trimming(topics: RoleTopics, progress: Progress, drivers: Drivers) -> None:
    """Return when roles have let go of something, or the time is over: that is part of what is told."""
    until = time.monotonic() + LIMIT_S
    while not all(_n_trimmed(topics).values()) and time.monotonic() < until:
        progress.look(drivers.tend)


def _n_trimmed(topics: RoleTopics) -> dict[str, int]:
    """Count the offsets between roles that are gone."""
    ends, counts = Ends(topics.topics.kafka), {"log": 1, "routed": topics.n_workers}
    return {topic: sum(ends.first(topics.name(topic), n)) for topic, n in counts.items()}


@contextlib.contextmanager
def _scene(drivers: Drivers, rng: random.Random, topics: RoleTopics, port: int | None) -> Iterator[RoleScene]:
    bed = None if HANDLE not in os.environ else load(Path(os.environ[HANDLE]))
    roles = roles_of(Settings(n_workers=_N_WORKERS, n_dispatchers=_N_DISPATCHERS))
    with ThreadPoolExecutor(4, "mending") as background:
        yield RoleScene(bed, drivers, rng, background, topics=topics, roles=roles, port=port)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--order", choices=("given", "arrival"), default="arrival")
    parser.add_argument("--delivery", choices=("exactly-once", AT_LEAST_ONCE), default="exactly-once")
    parser.add_argument("--kinds", help=f"in a bed: {', '.join(BED_KINDS)}; else: {', '.join(LOCAL_KINDS)}")
    parser.add_argument("--faults", type=int, default=8)
    parser.add_argument("--within", type=float, default=float("inf"), help="no fault after so many seconds")
    parser.add_argument("--out", type=Path, help="append the line to this file, too")
    parser.add_argument("--logs", type=Path, help="where drivers work, and leave what they and Spark say")
    given = parser.parse_args()
    in_bed = HANDLE in os.environ
    usual = "python,executor,host,driver,kafka,store,role-pause,cut-40"
    kinds = (given.kinds or (usual if in_bed else "python,role-pause,driver,kafka,python,jvm")).split(",")
    chosen = kinds_in_turn(kinds, given.faults, random.Random(given.seed))
    prefix = f"roles-{given.seed}"
    with tempfile.TemporaryDirectory(prefix="campaign-") as directory:
        logs = given.logs or Path(directory)
        is_exact = given.delivery != AT_LEAST_ONCE
        campaign = Campaign(given.seed, given.order, chosen, given.within, logs, is_exact)
        if in_bed:
            topics = Topics(Kafka(os.environ["PS2STREAM_KAFKA"]), prefix)
            where = f"{os.environ['PS2STREAM_STORE']}/{prefix}"
            found = run(campaign, topics, where, None)
        else:
            with broker() as port:
                topics = Topics(Kafka(f"{lone_broker.ADDRESS}:{port}"), prefix)
                where = str(Path(directory) / "where")
                found = run(campaign, topics, where, port)
    line = json.dumps(found)
    if given.out:
        with given.out.open("a") as file:
            file.write(f"{line}\n")
    print(line)


if __name__ == "__main__":
    main()
