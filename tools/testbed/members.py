"""How each member of a bed is started, and when it is ready."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import broker, jars, spark
from testbed.bed import BUCKET, KAFKA_PORT, STORE_PORT, Bed, record_pid
from testbed.disk_view import entrance
from testbed.layout import KAFKA, MASTER, STORE, Member
from testbed.processes import MARK, is_alive, spawn, wait_until
from testbed.requirements import program

#: No start takes so long, even on a machine that is busy with other things.
START_S = 180.0
_TOOL = Path(__file__).parent.parent / "run_testbed.py"
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class Started:
    """A member whose process runs, and what has to be true before it can be used."""

    member: Member
    pid: int
    is_ready: Callable[[], bool]
    log: Path

    def wait(self) -> None:
        wait_until(self.is_ready, self.member.name, lambda: is_alive(self.pid), self.log, START_S)


def start(bed: Bed, member: Member) -> Started:
    """Start the process of a member."""
    is_ready = _readiness(bed, member)
    if member.is_host:
        pid = _start_worker(bed, member)
    else:
        command = {MASTER: _master, STORE: _store, KAFKA: _kafka}[member.name](bed, member)
        environment = {**os.environ, **spark.spark_environment(member.address), MARK: bed.name}
        pid = spawn([*_in_network(member), *command], environment, bed.log(member.name))
    record_pid(bed.description, member.name, pid)
    return Started(member, pid, is_ready, bed.log(member.name))


def on_host(bed: Bed, host: Member, command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs a command on a host, and its environment."""
    apart = [program("unshare"), "--uts", "--mount", "/bin/sh", str(bed.entrance(host.name))]
    environment = {**bed.host_environment, **spark.spark_environment(host.address), MARK: bed.name}
    return [*_in_network(host), *apart, *command], environment


def prepare_host(bed: Bed, host: Member, visible: Sequence[Path]) -> None:
    """Write down what makes the disk of a host."""
    names = "".join(f"{member.address} {member.name}\n" for member in bed.layout.members)
    hosts_file = bed.directory / "hosts" / "names"
    hosts_file.parent.mkdir(exist_ok=True)
    hosts_file.write_text(
        f"127.0.0.1 localhost\n{bed.layout.driver_address} driver\n{names}", encoding="utf-8"
    )
    script = entrance(
        host.name,
        directory=bed.disk(host.name),
        hosts_file=hosts_file,
        home=Path(bed.host_environment["HOME"]),
        visible=visible,
    )
    bed.entrance(host.name).write_text(script, encoding="utf-8")
    bed.disk(host.name).mkdir()


def give_kernels(bed: Bed, host: Member) -> None:
    """Put the kernels that are compiled already onto the disk of a host."""
    caches = bed.disk(host.name) / "home" / ".cache" / "ps2stream"
    caches.mkdir(mode=0o700, parents=True, exist_ok=True)
    if bed.kernels.is_dir():
        shutil.copytree(bed.kernels, caches / "kernels")


def _in_network(member: Member) -> list[str]:
    return [program("ip"), "netns", "exec", member.namespace]


def _start_worker(bed: Bed, host: Member) -> int:
    master = bed.member(MASTER).address
    worker = spark.worker_command(host.address, master, cores=bed.sizes.cores, memory=bed.sizes.memory)
    command, environment = on_host(bed, host, worker)
    return spawn(command, environment, bed.log(host.name))


def _master(bed: Bed, member: Member) -> list[str]:
    recovery = bed.directory / "master"
    recovery.mkdir(exist_ok=True)
    return spark.master_command(member.address, recovery)


def _store(bed: Bed, member: Member) -> list[str]:
    journal = bed.directory / "store.journal"
    return [sys.executable, str(_TOOL), "serve-store", member.address, str(STORE_PORT), str(journal)]


def _kafka(bed: Bed, member: Member) -> list[str]:
    configuration = bed.directory / "kafka.properties"
    text = broker.properties(member.address, KAFKA_PORT, KAFKA_PORT + 1, bed.broker_data)
    configuration.write_text(text, encoding="utf-8")
    return broker.broker_command(kafka_jars(lambda _: None), configuration)


def kafka_jars(say: Callable[[str], None]) -> list[Path]:
    return jars.ensure_jars(jars.KAFKA_LOCK, jars.cache_directory() / "kafka-jars", say)


def _readiness(bed: Bed, member: Member) -> Callable[[], bool]:
    if member.name == KAFKA:
        return lambda: broker.answers(member.address, KAFKA_PORT)
    if member.name == STORE:
        return lambda: _has_bucket(bed.store_endpoint)
    if member.name == MASTER:
        return lambda: _listens(member.address, spark.PORT)
    master = bed.member(MASTER).address
    before = set(spark.live_workers(master))
    return lambda: any(
        id_ not in before and address == member.address for id_, address in spark.live_workers(master).items()
    )


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def _has_bucket(endpoint: str) -> bool:
    """Make the bucket, unless it is there; False while nobody answers."""
    request = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
    try:
        _NO_PROXY.open(request, timeout=5.0).close()
    except urllib.error.HTTPError as error:
        return error.code == 409
    except OSError:
        return False
    return True
