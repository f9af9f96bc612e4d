"""The memory of a command and of all processes that it starts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Literal, NamedTuple

#: Kinds of processes of a job on Spark: the one that started it, the Java machine, and Spark's own Python.
ProcessKind = Literal["driver", "java", "python"]
PROCESS_KINDS: tuple[ProcessKind, ...] = ("driver", "java", "python")

_EVERY_S = 0.5


class Resident(NamedTuple):
    """Bytes in memory; of them, those that no file backs. What several processes map is shared out."""

    n_bytes: int
    anonymous_bytes: int


class MemoryWatch(threading.Thread):
    """Sample the memory of a process and its descendants; what several map together is shared out."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._stopped = threading.Event()
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._stopped.wait(_EVERY_S):
            self.peak_bytes = max(self.peak_bytes, _n_bytes(self._root))

    def stop(self) -> int:
        self._stopped.set()
        self.join()
        return self.peak_bytes


def _n_bytes(root: int) -> int:
    return sum(_resident(process_id).n_bytes for process_id in _family(root))


def resident_by_kind(root: int) -> dict[ProcessKind, Resident]:
    """Return what a process and its descendants have in memory now, by kind."""
    found = dict.fromkeys(PROCESS_KINDS, Resident(0, 0))
    for process_id in _family(root):
        kind, now = _kind_of(process_id, root), _resident(process_id)
        before = found[kind]
        found[kind] = Resident(before.n_bytes + now.n_bytes, before.anonymous_bytes + now.anonymous_bytes)
    return found


def _kind_of(process_id: int, root: int) -> ProcessKind:
    if process_id == root:
        return "driver"
    try:
        name = Path(f"/proc/{process_id}/comm").read_text().strip()
    except OSError:
        name = ""
    return "java" if name == "java" else "python"


def _family(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(after_name[1]), []).append(int(path.parent.name))
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children.get(found[-1], [])
    return found


def _resident(process_id: int) -> Resident:
    try:
        lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended
        return Resident(0, 0)
    sizes = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines[1:]}
    return Resident(sizes.get("Pss:", 0), sizes.get("Pss_Anon:", 0))
