"""The memory of a command and of all processes that it starts."""

from __future__ import annotations

import threading
from pathlib import Path

_EVERY_S = 0.5


class MemoryWatch(threading.Thread):
    """Sample the memory of a process and its descendants; what several map together is shared out."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._stopped = threading.Event()
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._stopped.wait(_EVERY_S):
            self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_bytes, _family(self._root))))

    def stop(self) -> int:
        self._stopped.set()
        self.join()
        return self.peak_bytes


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


def _proportional_bytes(process_id: int) -> int:
    try:
        lines = Path(f"/proc/{process_id}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
