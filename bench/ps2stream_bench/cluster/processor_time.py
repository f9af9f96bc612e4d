"""Processor time of a bed: seconds of every process, by the member it is on and by its kind.

A process that ends between two looks would take its last seconds along; but the system adds them to what its
parent knows of ended children. What a parent knows beyond what was seen is counted as *ended unseen*, so that
nothing is lost as long as the parent lives.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from ps2stream_bench.cluster.members import Member

Kind = Literal["driver", "driver's Java", "executor", "Python", "Spark's own", "store", "ended unseen"]
KINDS: tuple[Kind, ...] = (
    "driver",
    "driver's Java",
    "executor",
    "Python",
    "Spark's own",
    "store",
    "ended unseen",
)
#: Where the driver is: on no host.
OUTSIDE = "driver"

_PROC, _NAMESPACES = Path("/proc"), Path("/var/run/netns")
_EVERY_S = 0.5
_EXECUTOR = b"CoarseGrainedExecutorBackend"

#: Seconds by place (the name of a member, or OUTSIDE) and kind.
Seconds = Mapping[tuple[str, Kind], float]


class _Stat(NamedTuple):
    """What the system says of a process."""

    parent: int
    own_s: float
    ended_s: float  # of children that have ended, with theirs


class _Seen(NamedTuple):
    """A process as it was when it was last seen."""

    place: str
    kind: Kind
    parent: int
    own_s: float
    ended_s: float

    @property
    def whole_s(self) -> float:
        return self.own_s + self.ended_s


class ProcessorTimes:
    """Look at the processes of a bed again and again, and remember those that are gone."""

    def __init__(
        self, members: Iterable[Member], driver: int, proc: Path = _PROC, namespaces: Path = _NAMESPACES
    ) -> None:
        self._places = {(namespaces / each.namespace).stat().st_ino: each.name for each in members}
        self._driver, self._proc = driver, proc
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._seen: dict[tuple[int, int], _Seen] = {}  # by id and time of start: ids are used again
        self._alive: set[tuple[int, int]] = set()
        self._looking = threading.Lock()

    def look(self) -> None:
        """See all processes of the bed as they are now."""
        with self._looking:
            found = dict(filter(None, map(self._stat, self._proc.glob("[0-9]*"))))
            family = _descendants(self._driver, {pid: stat.parent for (pid, _), stat in found.items()})
            self._alive = set()
            for key, stat in found.items():
                known = self._seen.get(key)
                place = known.place if known else self._place(key[0], family)
                if place is not None:
                    # Asked each time: a process that was just forked still has the name of its parent.
                    kind = self._kind(key[0], place) or (known.kind if known else "Python")
                    self._seen[key] = _Seen(place, kind, *stat)
                    self._alive.add(key)

    def read(self) -> Seconds:
        """Return the seconds of all processes that were ever seen, up to now; differences are what counts."""
        self.look()
        with self._looking:
            return _summed(self._seen, self._alive)

    def _stat(self, directory: Path) -> tuple[tuple[int, int], _Stat] | None:
        try:
            fields = (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            return None
        user, system, ended_user, ended_system = (int(each) * self._tick_s for each in fields[11:15])
        key = int(directory.name), int(fields[19])
        return key, _Stat(int(fields[1]), user + system, ended_user + ended_system)

    def _place(self, pid: int, family: set[int]) -> str | None:
        try:
            namespace = (self._proc / str(pid) / "ns" / "net").stat().st_ino
        except OSError:
            return None
        return self._places.get(namespace) or (OUTSIDE if pid in family else None)

    def _kind(self, pid: int, place: str) -> Kind | None:
        """Tell by its command line what a process is; one that is ending has none any more."""
        try:
            command = (self._proc / str(pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            command = [b""]
        if not command[0]:
            return None
        is_java = os.path.basename(command[0]) == b"java"
        if place == OUTSIDE:
            return "driver's Java" if is_java else "driver"
        if place == "store":
            return "store"
        if any(each.endswith(_EXECUTOR) for each in command):
            return "executor"
        return "Spark's own" if is_java else "Python"


def _summed(seen: Mapping[tuple[int, int], _Seen], alive: set[tuple[int, int]]) -> Seconds:
    seconds: dict[tuple[str, Kind], float] = defaultdict(float)
    gone: dict[int, float] = defaultdict(float)
    for key, each in seen.items():
        seconds[each.place, each.kind] += each.own_s
        if key not in alive:
            gone[each.parent] += each.whole_s
    for (pid, _), each in seen.items():
        seconds[each.place, "ended unseen"] += max(0.0, each.ended_s - gone[pid])
    return seconds


def since(before: Seconds, now: Seconds) -> Seconds:
    """Return what was used between two readings."""
    return {key: now[key] - before.get(key, 0.0) for key in now}


def _descendants(root: int, parents: Mapping[int, int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found, waiting = set(), [root]
    while waiting:
        pid = waiting.pop()
        found.add(pid)
        waiting += children.get(pid, [])
    return found


class Watch(threading.Thread):
    """Look now and then, for as long as the context lasts."""

    def __init__(self, times: ProcessorTimes) -> None:
        super().__init__(daemon=True, name="processor times")
        self._times = times
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(_EVERY_S):
            self._times.look()

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stopped.set()
        self.join()
