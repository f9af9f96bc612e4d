"""The figures of one plan: what a trial on the sample counted, charged by the costs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from ps2stream.partitioning.load import Costs
from ps2stream.partitioning.plan import Plan, balance_of
from ps2stream.planning.trial import Trial


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """Loads are milliseconds of a worker for a thousand publications of the stream.

    ``stored``: subscriptions of the sample at each worker. ``discarded``: the share of publications that are
    sent to no worker. ``sigma`` is the bound on L_max / L_min that the partitioner aimed at, if it had one.
    """

    partitioner: str
    loads_ms: tuple[float, ...]
    stored: tuple[int, ...]
    replication: float
    fan_out: float
    discarded: float
    build_s: float
    sigma: float | None
    keeps_sigma: bool | None

    @classmethod
    def of(cls, plan: Plan, trial: Trial, costs: Costs, build_s: float) -> PlanFigures:
        n_publications = max(trial.sample.n_publications, 1)
        loads_ms = trial.loads(costs) * 1e-6 * 1_000 / n_publications
        return cls(
            partitioner=plan.partitioner,
            loads_ms=tuple(loads_ms.tolist()),
            stored=tuple(trial.n_subscriptions.tolist()),
            replication=trial.replication,
            fan_out=trial.fan_out,
            discarded=trial.n_discarded / n_publications,
            build_s=build_s,
            sigma=plan.estimate.sigma if plan.estimate else None,
            keeps_sigma=plan.estimate.keeps_sigma if plan.estimate else None,
        )

    @property
    def n_workers(self) -> int:
        return len(self.loads_ms)

    @property
    def load_ms(self) -> float:
        """Return the load of all workers together."""
        return sum(self.loads_ms)

    @property
    def balance(self) -> float:
        """Return L_max / L_min; infinite where a worker has nothing to do."""
        return balance_of(self.loads_ms)

    @property
    def peak(self) -> float:
        """Return L_max / L_avg: how much longer the busiest worker takes than an even share would."""
        return max(self.loads_ms) * self.n_workers / self.load_ms if self.load_ms else 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for JSON, which knows no infinity."""
        derived = {
            "n_workers": self.n_workers,
            "load_ms": self.load_ms,
            "max_over_min": self.balance if math.isfinite(self.balance) else None,
            "max_over_mean": self.peak,
        }
        figures = {"partitioner": self.partitioner, **derived, **asdict(self)}
        if self.sigma is not None and not math.isfinite(self.sigma):
            figures["sigma"] = None
        return figures
