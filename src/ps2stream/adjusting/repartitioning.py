"""Would another plan serve the stream better? (Sec. V-B)

A plan always looks good on the sample it was made from. So it is made from one half of the sample, and
compared with the running one on the other half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ps2stream.arrays import Float64s
from ps2stream.config import Settings
from ps2stream.partitioning import partitioner_named
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample, some_of
from ps2stream.planning.first_plan import costs_of
from ps2stream.planning.trial import try_plan


@dataclass(frozen=True, slots=True)
class Considered:
    """A new plan beside the running one: the loads of their workers on the same sample."""

    plan: Plan
    running: Float64s
    renewed: Float64s

    @property
    def gain(self) -> float:
        """Return by which share the new plan lowers the load of the busiest worker."""
        busiest = float(self.running.max(initial=0.0))
        return 1.0 - float(self.renewed.max(initial=0.0)) / busiest if busiest > 0.0 else 0.0


def consider(sample: Sample, running: Plan, settings: Settings) -> Considered:
    """Make a plan for what the stream is like now and compare it with the running one."""
    costs = costs_of(sample, settings)
    partitioner = partitioner_named(settings.partitioner, costs)
    seen, unseen = (_half(sample, start) for start in range(2))
    plan = partitioner.plan(seen, running.n_workers, number=running.number + 1, seed=settings.sample_seed)
    loads = [try_plan(each, unseen, settings).loads(costs) for each in (running, plan)]
    return Considered(plan, *loads)


def _half(sample: Sample, start: int) -> Sample:
    rows = (np.arange(start, n, 2) for n in (sample.n_publications, sample.n_subscriptions))
    return some_of(sample, *rows)
