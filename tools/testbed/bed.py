"""A bed as its directory describes it."""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed import spark
from testbed.errors import BedError
from testbed.layout import KAFKA, MASTER, STORE, Layout, Member

#: The environment variable of a bed's command that names the bed's description.
HANDLE = "PS2STREAM_CLUSTER"
#: On a disk, unlike /tmp on many systems, and the same for all users and settings: leftovers must be found.
BEDS = Path("/var/tmp/ps2stream-testbed")
BUCKET = "ps2stream"
STORE_PORT = 9000
KAFKA_PORT = 9092
_DESCRIPTION = "cluster.json"


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a host offers to Spark."""

    cores: int
    memory: str


@dataclass(frozen=True, slots=True)
class Bed:
    """Everything about a bed that a process needs which did not make it."""

    directory: Path
    layout: Layout
    sizes: Sizes
    launcher: int
    #: Of every process on a host, in full: nothing of the user's own environment gets there unseen.
    host_environment: dict[str, str]
    pids: dict[str, int]

    @property
    def name(self) -> str:
        return self.layout.bed

    @property
    def description(self) -> Path:
        return self.directory / _DESCRIPTION

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def kernels(self) -> Path:
        """The compiled kernels that each host begins with."""
        return self.directory / "kernels"

    @property
    def broker_data(self) -> Path:
        return self.directory / "kafka"

    def log(self, member: str) -> Path:
        return self.logs / f"{member}.log"

    def disk(self, host: str) -> Path:
        return self.directory / "hosts" / host

    def entrance(self, host: str) -> Path:
        return self.directory / "hosts" / f"enter-{host}.sh"

    def member(self, name: str) -> Member:
        for member in self.layout.members:
            if member.name == name:
                return member
        names = ", ".join(member.name for member in self.layout.members)
        raise BedError(f"no member {name!r} in {self.name}; it has {names}")

    @property
    def master_url(self) -> str:
        return f"spark://{self.member(MASTER).address}:{spark.PORT}"

    @property
    def store_url(self) -> str:
        return f"s3://{BUCKET}/{self.name}"

    @property
    def store_endpoint(self) -> str:
        return f"http://{self.member(STORE).address}:{STORE_PORT}"

    @property
    def kafka(self) -> str | None:
        found = [member.address for member in self.layout.members if member.name == KAFKA]
        return f"{found[0]}:{KAFKA_PORT}" if found else None

    def save(self) -> None:
        text = json.dumps(self._described(), indent=2) + "\n"
        part = self.directory / f".{_DESCRIPTION}.{os.getpid()}"
        part.write_text(text, encoding="utf-8")
        part.replace(self.description)

    def _described(self) -> dict[str, Any]:
        members = {member.name: self._described_member(member) for member in self.layout.members}
        return {
            "name": self.name,
            "directory": str(self.directory),
            "launcher": self.launcher,
            "bridge": self.layout.bridge,
            "subnet": str(self.layout.subnet),
            "driver": self.layout.driver_address,
            "master": self.master_url,
            "store": self.store_url,
            "store_endpoint": self.store_endpoint,
            "kafka": self.kafka,
            "hosts": {member.name: members[member.name] for member in self.layout.hosts},
            "services": {
                member.name: members[member.name] for member in self.layout.members if not member.is_host
            },
            "sizes": {"cores": self.sizes.cores, "memory": self.sizes.memory},
            "host_environment": self.host_environment,
        }

    def _described_member(self, member: Member) -> dict[str, Any]:
        described: dict[str, Any] = {
            "namespace": member.namespace,
            "veth": member.veth,
            "address": member.address,
            "pid": self.pids.get(member.name),
            "log": str(self.log(member.name)),
        }
        if member.is_host:
            described["disk"] = str(self.disk(member.name))
        return described


def load(description: Path) -> Bed:
    """Read what `Bed.save` wrote."""
    try:
        told = json.loads(description.read_text(encoding="utf-8"))
    except OSError as error:
        raise BedError(f"{description} describes no bed: {error.strerror}") from error
    members = {**told["services"], **told["hosts"]}
    layout = Layout(
        told["name"],
        ipaddress.IPv4Network(told["subnet"]),
        tuple(Member(name, one["namespace"], one["address"]) for name, one in members.items()),
    )
    return Bed(
        directory=Path(told["directory"]),
        layout=layout,
        sizes=Sizes(**told["sizes"]),
        launcher=told["launcher"],
        host_environment=told["host_environment"],
        pids={name: one["pid"] for name, one in members.items() if one["pid"] is not None},
    )


def record_pid(description: Path, member: str, pid: int) -> Bed:
    """Write down which process is a member's from now on."""
    with locked(description.with_name("members.lock")):
        bed = load(description)
        bed = replace(bed, pids={**bed.pids, member: pid})
        bed.save()
    return bed


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock while the context lasts; it ends with the process at the latest."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def beds_directory() -> Path:
    """Return the directory of all beds, made if need be: others may write to where it lies."""
    BEDS.mkdir(mode=0o700, exist_ok=True)
    if BEDS.is_symlink() or BEDS.stat().st_uid != os.geteuid():
        raise BedError(f"{BEDS} belongs to somebody else; remove it")
    return BEDS
