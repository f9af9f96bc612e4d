"""What can go wrong in a bed, on request: dead hosts, dead services, cut cables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from testbed import members, network, processes
from testbed.bed import HANDLE, Bed, beds_directory, load
from testbed.errors import BedError
from testbed.leftovers import is_alive

# What the command line of each kind of process on a host contains.
KINDS = {
    "worker": "org.apache.spark.deploy.worker.Worker",
    "executor": "org.apache.spark.executor.CoarseGrainedExecutorBackend",
    "python": "python",
}


def current_bed() -> Bed:
    """Return the bed that this process was started in; outside of all, the only one there is."""
    if given := os.environ.get(HANDLE):
        return load(Path(given))
    alive = [path for path in sorted(beds_directory().glob("ps2b*")) if is_alive(path.name)]
    if len(alive) != 1:
        names = ", ".join(path.name for path in alive) or "none"
        raise BedError(f"which bed? {HANDLE} is not set, and these live: {names}")
    return load(alive[0] / "cluster.json")


def cut(bed: Bed, name: str, seconds: float) -> None:
    """Cut a member off from all others for a while."""
    network.cut(bed.member(name), seconds)


def kill(bed: Bed, name: str, kind: str | None = None) -> int:
    """Kill all processes of a member, or those of a kind; return how many there were.

    None is an error: a test would take a fault for survived that never happened.
    """
    namespace = bed.member(name).namespace
    pids = processes.inside(namespace) if kind is None else of_kind(bed, name, kind)
    if not pids:
        raise BedError(f"no {kind or 'process'} runs on {name}: nothing was killed")
    processes.kill(pids)
    if kind is None:
        processes.kill_all(lambda: processes.inside(namespace))
    return len(pids)


def of_kind(bed: Bed, name: str, kind: str) -> set[int]:
    """Find the processes of a kind on a host."""
    pids = processes.inside(bed.member(name).namespace)
    lines = {pid: processes.command_line(pid) for pid in pids}
    if kind == "python":
        return {pid for pid, line in lines.items() if KINDS[kind] in os.path.basename(line.split(" ")[0])}
    return {pid for pid, line in lines.items() if KINDS[kind] in line}


def start(bed: Bed, name: str, *, empty: bool = False) -> int:
    """Start a member that was killed, and wait until it can be used; return the id of its process.

    `empty`: another host takes its place, with nothing on its disk.
    """
    member = bed.member(name)
    pid = bed.pids.get(name)
    if pid is not None and processes.is_alive(pid):
        raise BedError(f"{name} runs already, as process {pid}")
    if empty and not member.is_host:
        raise BedError(f"{name} is no host: only a host can come back with an empty disk")
    # Without its worker, a host may still have executors that have not noticed.
    processes.kill_all(lambda: processes.inside(member.namespace))
    network.plug(member)
    if empty:
        shutil.rmtree(bed.disk(name))
        bed.disk(name).mkdir()
        members.give_kernels(bed, member)
    started = members.start(bed, member)
    started.wait()
    return started.pid


def execute(bed: Bed, name: str, command: Sequence[str]) -> None:
    """Become a command on a host."""
    member = bed.member(name)
    if not member.is_host:
        raise BedError(f"{name} is no host")
    whole, environment = members.on_host(bed, member, command)
    os.execve(whole[0], whole, environment)
