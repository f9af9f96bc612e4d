"""How the job of a stream is restored from its state, whichever engine runs it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from ps2stream.adjusting.controller import Controller, controller_of
from ps2stream.config import Settings
from ps2stream.engines.batch_tasks import BatchTasks
from ps2stream.engines.batches import Batches
from ps2stream.engines.durable_job import SNAPSHOT_EVERY, BatchDone, DurableJob
from ps2stream.engines.held_state import HeldState
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample
from ps2stream.planning.first_plan import plan_of
from ps2stream.sinks.sink import Sink
from ps2stream.sources.feed import Feed

OnBatch = Callable[[BatchDone], None]


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream runs, apart from its settings.

    ``plan``: for the first start. ``interval_s``: from the start of a batch to that of the next. ``prune``:
    drop events where they come from once they are processed. ``snapshot_every``: after this many updates, or
    as many as there are subscriptions, a snapshot replaces the subscription log. ``controller``: who adjusts
    the load, if not the one that the settings ask for.
    """

    plan: Plan | None = None
    interval_s: float = 0.0
    prune: bool = False
    snapshot_every: int = SNAPSHOT_EVERY
    controller: Controller | None = None


@dataclass(frozen=True, slots=True)
class StreamStart:
    """All that it takes to start the job of a feed, as often as need be.

    ``sample``: what the first plan is made from where none is given. ``background``: where plans are made
    anew. ``beside``: where snapshots are written, if not by the batches (``durable_job.py``).
    """

    held: HeldState
    feed: Feed
    sink: Sink
    settings: Settings
    options: StreamOptions
    sample: Callable[[], Sample]
    background: Executor
    beside: Executor | None = None

    def batches(self, tasks: BatchTasks, on_done: OnBatch, *, is_lazy: bool = False) -> Batches:
        """Restore the job; its batches are carried out by some tasks, and each is told when it is done."""
        mine, options = self.held.start(), self.options
        if not mine.job_file.exists():
            mine.create(options.plan or plan_of(self.sample(), self.settings), self.settings)
        job = DurableJob(
            tasks,
            mine.open(self.settings),
            self.settings,
            self.sink,
            on_done,
            options.snapshot_every,
            prune_journal=options.prune,
            controller=options.controller or controller_of(self.settings, self.background),
            is_lazy=is_lazy,
            beside=self.beside,
        )
        job.start()
        return Batches(job, self.feed)
