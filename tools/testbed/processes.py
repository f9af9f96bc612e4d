"""Processes of a bed: started apart from whoever starts them, and found again by a mark."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from testbed.errors import BedError
from testbed.requirements import program

#: In the environment of every process of a bed: the bed's name.
MARK = "PS2STREAM_TESTBED"
_GONE_S = 20.0
_LOOK_EVERY_S = 0.05


def spawn(command: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
    """Start a process in a session of its own, which outlives this one; return its id."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        command[0],
        list(command),
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in _handed_down()),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTTOU],
    )


def _handed_down() -> list[int]:
    """List what this process would hand down to others: they would hold a lock among it while they live."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing is gone
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


def is_alive(pid: int) -> bool:
    """Say whether a process runs; one that ended and was not waited for does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def parent(pid: int) -> int | None:
    """Return who started a process, or took it over; None if it is gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return int(status.rpartition(")")[2].split()[1])


def marked(bed: str) -> set[int]:
    """Find the processes of a bed, except this one and those it was started by."""
    wanted = f"{MARK}={bed}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.add(int(entry.name))
    return {pid for pid in found - _ancestry() if is_alive(pid)}


def inside(namespace: str) -> set[int]:
    """Find the processes in a network namespace."""
    listed = subprocess.run(
        [program("ip"), "netns", "pids", namespace], capture_output=True, text=True, check=False
    )
    return {pid for pid in map(int, listed.stdout.split()) if is_alive(pid)}


def _ancestry() -> set[int]:
    pids: set[int] = set()
    pid: int | None = os.getpid()
    while pid is not None and pid > 1 and pid not in pids:
        pids.add(pid)
        pid = parent(pid)
    return pids


def kill(pids: Iterable[int], how: signal.Signals = signal.SIGKILL) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)


def kill_all(find: Callable[[], set[int]]) -> None:
    """Kill what `find` finds until it finds nothing: a process may have started another meanwhile."""
    deadline = time.monotonic() + _GONE_S
    while pids := find():
        if time.monotonic() > deadline:
            raise BedError(f"these processes do not end: {', '.join(map(str, sorted(pids)))}")
        kill(pids)
        reap()
        time.sleep(_LOOK_EVERY_S)


def reap() -> None:
    """Take note of the end of children: until then they are still in the list of processes."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def wait_until(
    ready: Callable[[], bool], what: str, runs: Callable[[], bool], log: Path, limit_s: float
) -> None:
    """Wait for something that a process has to bring about, as long as it runs."""
    deadline = time.monotonic() + limit_s
    while not ready():
        if not runs():
            raise BedError(f"{what} ended while it started; its last words:\n{last_lines(log)}")
        if time.monotonic() > deadline:
            raise BedError(f"{what} is not ready after {limit_s:.0f} s; its last words:\n{last_lines(log)}")
        time.sleep(_LOOK_EVERY_S)


def last_lines(log: Path, n: int = 12) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "  (no log)"
    return "\n".join(f"  {line}" for line in lines[-n:])
