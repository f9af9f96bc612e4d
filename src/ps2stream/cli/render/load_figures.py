"""The loads of a job's workers, as the job has left them: checked, and with names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ps2stream.errors import StateError


@dataclass(frozen=True, slots=True)
class CellFigures:
    """What a worker did in one cell; ``subscriptions`` is an average, ``n_bytes`` is what would move."""

    cell: int
    bounds: tuple[float, ...]
    load: float
    busy_s: float
    n_publications: int
    n_subscriptions: float
    n_candidates: int
    n_matches: int
    n_bytes: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CellFigures:
        return cls(
            int(values["cell"]),
            tuple(map(float, values["bounds"])),
            float(values["load"]),
            float(values["busy_s"]),
            int(values["publications"]),
            float(values["subscriptions"]),
            int(values["candidates"]),
            int(values["matches"]),
            int(values["bytes"]),
        )


@dataclass(frozen=True, slots=True)
class WorkerFigures:
    """What one worker did, and its busiest cells, busiest first."""

    worker: int
    load: float
    busy_s: float
    cells: tuple[CellFigures, ...]


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """The newest window of a job: ``at`` is when it was taken, ``plans`` are newest first.

    An ``imbalance`` of None stands for a worker that had nothing to do.
    """

    at: float
    batch_id: int
    plans: tuple[int, ...]
    n_subscriptions: int
    n_older: int
    n_publications: int
    is_full: bool
    sigma: float
    imbalance: float | None
    workers: tuple[WorkerFigures, ...]

    @classmethod
    def of(cls, status: Mapping[str, Any]) -> LoadFigures:
        """Read what ``pipeline.status`` has made."""
        try:
            imbalance = status["imbalance"]
            return cls(
                float(status["at"]),
                int(status["batch_id"]),
                tuple(map(int, status["plans"])),
                int(status["subscriptions"]),
                int(status["older_subscriptions"]),
                int(status["window_publications"]),
                bool(status["window_is_full"]),
                float(status["sigma"]),
                None if imbalance is None else float(imbalance),
                tuple(map(_worker, status["workers"])),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the status that the job has left cannot be read: {error!r}") from error

    @property
    def load(self) -> float:
        """Return the load of all workers together."""
        return sum(worker.load for worker in self.workers)


def _worker(values: Mapping[str, Any]) -> WorkerFigures:
    cells = tuple(map(CellFigures.of, values["cells"]))
    return WorkerFigures(int(values["worker"]), float(values["load"]), float(values["busy_s"]), cells)
