"""Removing beds, above all those whose launcher is gone."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

from testbed import network, processes
from testbed.bed import beds_directory
from testbed.errors import BedError
from testbed.layout import bed_of

LOCK = "lock"
_KEPT_LOGS = 10
_REMOVED = ".removed-"


def sweep() -> list[str]:
    """Remove what launchers that are gone have left, and return the names of their beds.

    For whoever holds the lock of all beds only.
    """
    directory = beds_directory()
    dead = {path.name for path in directory.glob("ps2b*") if not _is_held(path / LOCK)}
    # A directory may be gone before its namespaces, if somebody cleans up by hand.
    dead |= {bed for bed in map(bed_of, network.namespaces()) if bed and not (directory / bed).exists()}
    for bed in sorted(dead):
        remove_bed(bed)
    for path in directory.glob(f"{_REMOVED}*"):
        _remove_tree(path)
    return sorted(dead)


def is_alive(bed: str) -> bool:
    """Say whether a bed has a launcher."""
    return _is_held(beds_directory() / bed / LOCK)


def remove_bed(bed: str) -> None:
    """Remove the processes, the network and the directory of a bed, whatever there is of them."""
    namespaces = [namespace for namespace in network.namespaces() if bed_of(namespace) == bed]

    def left() -> set[int]:
        return processes.marked(bed).union(*map(processes.inside, namespaces))

    processes.kill_all(left)
    network.remove_network(bed)
    directory = beds_directory() / bed
    if directory.exists():
        # Under another name at once: from here on the next bed may be called the same.
        doomed = directory.with_name(f"{_REMOVED}{bed}-{os.getpid()}-{time.monotonic_ns()}")
        directory.rename(doomed)
        _remove_tree(doomed)


def keep_logs(bed: str) -> Path:
    """Move the logs of a bed to where they stay; of older ones only a few are kept."""
    kept = beds_directory() / "logs"
    kept.mkdir(exist_ok=True)
    place = kept / f"{time.strftime('%Y%m%d-%H%M%S')}-{bed}-{os.getpid()}"
    (beds_directory() / bed / "logs").rename(place)
    for old in sorted(kept.iterdir())[:-_KEPT_LOGS]:
        shutil.rmtree(old, ignore_errors=True)
    return place


def _is_held(lock: Path) -> bool:
    try:
        with lock.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _remove_tree(directory: Path) -> None:
    """Remove a directory that contains no mounts: below a mount may be anything."""
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    if any(line.split()[4].startswith(f"{directory}/") for line in mounts.splitlines()):
        raise BedError(f"something is mounted in {directory}; unmount it")
    subprocess.run(["rm", "-rf", "--one-file-system", "--", str(directory)], check=False)
