"""The manifest of a log: which of its files count, and by which plans the stream is routed.

Where drivers of several epochs write (``state/epochs.py``), files that nobody counts lie among the others,
and a listing does not tell which. The manifest of an epoch does; it is small and read by its key.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import NamedTuple

from ps2stream.routing.routing import PlanNumbers, Routing

#: A file of the log: its kind, its batch and the epoch that wrote it.
File = tuple[str, int, int]
SNAPSHOT, BATCH = "snapshot", "batch"


class Manifest(NamedTuple):
    """Files of a log in the order of their batches, the routing after the last, and who made its plans."""

    files: tuple[File, ...] = ()
    routing: PlanNumbers | None = None
    plan_epochs: dict[int, int] = {}  # noqa: RUF012  # never changed

    def __reduce__(self) -> tuple[object, ...]:
        """Send it to tasks as it is stored: a few runs where it lists many thousand files."""
        return Manifest.from_json, (self.to_json(),)

    @property
    def base(self) -> int:
        """Return the batch of the newest snapshot, -1 without one."""
        return max((number for kind, number, _ in self.files if kind == SNAPSHOT), default=-1)

    @property
    def last(self) -> int:
        """Return the newest batch that is covered, -1 when nothing is."""
        return max((number for _, number, _ in self.files), default=-1)

    def added(self, file: File, routing: PlanNumbers) -> Manifest:
        """Return the manifest with one file more; plans that are new to it are of the file's epoch."""
        kind, number, epoch = file
        if kind == SNAPSHOT:
            kept = tuple(each for each in self.files if each[0] == BATCH and each[1] > number)
        else:
            kept = tuple(each for each in self.files if each[:2] != (kind, number))
        newest = routing if number >= self.last else self.routing or routing
        epochs = {plan: self.plan_epochs.get(plan, epoch) for plan in newest.parts}
        return Manifest(tuple(sorted((*kept, file), key=_order)), newest, epochs)

    def to_json(self) -> bytes:
        return json.dumps(
            {
                "files": _runs(self.files),
                "routing": self.routing and asdict(self.routing),
                "plan_epochs": {str(plan): epoch for plan, epoch in self.plan_epochs.items()},
            }
        ).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
        """Raise ValueError, KeyError or TypeError for what is none."""
        said = json.loads(data)
        files = [
            (str(kind), number, int(epoch))
            for kind, first, last, epoch in said["files"]
            for number in range(int(first), int(last) + 1)
        ]
        routing: PlanNumbers | None = Routing(**said["routing"]) if said["routing"] else None
        return cls(tuple(files), routing, {int(plan): int(e) for plan, e in said["plan_epochs"].items()})


def _order(file: File) -> tuple[int, bool]:
    return file[1], file[0] == BATCH


def _runs(files: tuple[File, ...]) -> list[tuple[str, int, int, int]]:
    """Join the files of batches that follow each other: most do, and there may be many thousand."""
    runs: list[tuple[str, int, int, int]] = []
    for kind, number, epoch in files:
        if runs and runs[-1][0] == kind and runs[-1][2:] == (number - 1, epoch):
            runs[-1] = (kind, runs[-1][1], number, epoch)
        else:
            runs.append((kind, number, number, epoch))
    return runs
