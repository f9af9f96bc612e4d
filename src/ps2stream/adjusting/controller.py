"""The controller: watch the loads, decide on adjustments, carry them out between batches (Sec. V).

It is told about every batch and asked before every batch. What it decides is carried out at once by
the registrar; the rows that workers need come back to the engine, which puts them in front of the
updates of the batch.
"""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from ps2stream.adjusting.recent_sample import KEPT, CellEvidence, RecentSample
from ps2stream.adjusting.repartitioning import Considered, consider
from ps2stream.balance.adjustments import Adjustment, step_records
from ps2stream.balance.loads import Window
from ps2stream.balance.local_adjustment import LocalAdjustment, adjust, is_unbalanced
from ps2stream.balance.selection import selector_named
from ps2stream.config import Settings
from ps2stream.model.schemas import empty
from ps2stream.partitioning.load import STANDARD_COSTS
from ps2stream.partitioning.plan import Plan, balance_of
from ps2stream.roles.migration import Fetch, Migrated, nothing_migrated
from ps2stream.roles.packets import CELL_LOADS
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker_host import WorkerHost, fetching

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Observed:
    """What a batch showed of the loads."""

    n_publications: int
    n_updates: int
    cells: Mapping[int, pa.RecordBatch]  # by worker, schema CELL_LOADS
    busy_s: Mapping[int, float]  # by worker
    sampled: Sequence[pa.RecordBatch]  # schema SAMPLED


class Adjusted(NamedTuple):
    """What an adjustment came to: rows for the log, its record, and an index that nobody needs any more."""

    migrated: Migrated
    record: Adjustment
    dropped_index: str | None = None


class Controller(Protocol):
    """Decide on adjustments; one for each job."""

    def observe(self, observed: Observed) -> Adjustment | None:
        """Take in a finished batch; return the record of the last adjustment once its effect is known."""
        ...

    def adjust(self, batch_id: int, registrar: Registrar, hosts: Sequence[WorkerHost]) -> Adjusted | None:
        """Adjust the routing before a batch, where that is due; ``hosts`` by the numbers of workers."""
        ...

    def completed(self, record: Adjustment) -> None:
        """Take the record of the newest adjustment back with what its batch has added to it."""
        ...


class LoadController:
    """Adjust when the workers have drifted apart, and when a new plan would be better.

    ``background``: where new plans are made; without it the stream waits for them.
    """

    def __init__(self, settings: Settings, background: Executor | None = None) -> None:
        self.settings = settings
        self._adjustment = settings.adjustment
        self.window = Window(settings.n_workers, self._adjustment.window, settings.load, empty(CELL_LOADS))
        self.recent = RecentSample()
        self._background = background
        self._considering: Future[Considered] | None = None
        self._since_check = 0
        self._since_switch = 0
        self._is_asked = False
        self._awaiting: Adjustment | None = None

    def request_repartition(self) -> None:
        """Consider a new plan as soon as a whole window has been seen."""
        self._is_asked = True

    def observe(self, observed: Observed) -> Adjustment | None:
        self.window.add(observed.n_publications, observed.cells, observed.busy_s)
        self.recent.add(observed.sampled, observed.n_publications, observed.n_updates)
        self._since_check += observed.n_publications
        self._since_switch += observed.n_publications
        if self._awaiting is None or not self.window.is_full:
            return None
        known = replace(self._awaiting, loads_after=tuple(self.window.totals().tolist()))
        self._awaiting = None
        return known

    def adjust(self, batch_id: int, registrar: Registrar, hosts: Sequence[WorkerHost]) -> Adjusted | None:
        started = time.monotonic()
        adjusted = self._due(registrar, hosts)
        if adjusted is None:
            return None
        record = replace(adjusted.record, batch_id=batch_id, at=_now(), pause_s=time.monotonic() - started)
        self.window.clear()
        self._awaiting = record
        return adjusted._replace(record=record)

    def completed(self, record: Adjustment) -> None:
        if self._awaiting is not None:
            self._awaiting = record

    def _due(self, registrar: Registrar, hosts: Sequence[WorkerHost]) -> Adjusted | None:
        fetch = fetching(hosts)
        if registrar.routing.older is not None:
            return self._unite(registrar, fetch)
        considered = self._considered(registrar, fetch)
        if considered is not None:
            return self._switch(considered, registrar)
        if self._adjustment.is_local and self.window.is_full and self._considering is None:
            return self._local(registrar, hosts)
        return None

    def _local(self, registrar: Registrar, hosts: Sequence[WorkerHost]) -> Adjusted | None:
        sigma = self._adjustment.sigma
        if not is_unbalanced((self.window.totals(), *self.window.halves()), sigma):
            return None
        started = time.monotonic()
        planned = adjust(
            registrar.plan,
            [self.window.table(worker) for worker in range(self.settings.n_workers)],
            self._adjustment,
            selector_named(self._adjustment.selector, self.settings.sample_seed),
            CellEvidence(self.recent, registrar, self.settings.sample_seed),
            replace(STANDARD_COSTS, load=self.settings.load),
            lambda worker: hosts[worker].contents(),
        )
        if planned is None:
            # Nothing that can be moved helps: look again when there is something new to see.
            self.window.clear()
            return None
        ratio = balance_of(planned.before.tolist())
        reason = f"the busiest worker had {ratio:.2f} times the load of the least busy one, above {sigma:g}"
        selection_s = time.monotonic() - started
        return relocate(planned, registrar, fetching(hosts), reason, self._adjustment.selector, selection_s)

    def _considered(self, registrar: Registrar, fetch: Fetch) -> Considered | None:
        """Return a plan that is worth to switch to, if one has been found."""
        is_due = self._adjustment.is_global and self._since_check >= self._adjustment.check_every
        is_known = self.window.is_full and registrar.registry.n_live > 0
        if self._considering is None and (is_due or self._is_asked) and is_known:
            self._since_check, self._is_asked = 0, False
            random = np.random.default_rng([self.settings.sample_seed, registrar.plan.number])
            sample = self.recent.sample(registrar.some_live(KEPT, random, fetch), registrar.registry.n_live)
            work = (sample, registrar.plan, self.settings)
            self._considering = (
                self._background.submit(consider, *work)
                if self._background
                else _done(lambda: consider(*work))
            )
        if self._considering is None or not self._considering.done():
            return None
        finished, self._considering = self._considering, None
        if finished.cancelled():
            return None
        failure = finished.exception()
        if failure is not None:
            # The stream can do without a better plan, but nobody should have to guess why there is none.
            _LOG.error("no new plan could be made: %s", failure, exc_info=failure)
            return None
        considered = finished.result()
        return considered if considered.gain > self._adjustment.margin else None

    def _switch(self, considered: Considered, registrar: Registrar) -> Adjusted:
        self._since_switch = 0
        reason = (
            f"a new plan lowers the load of the busiest worker by {considered.gain:.0%}, "
            f"more than {self._adjustment.margin:.0%}"
        )
        return switch(considered, registrar, reason)

    def _unite(self, registrar: Registrar, fetch: Fetch) -> Adjusted | None:
        n_older, n_live = registrar.n_older(), registrar.registry.n_live
        share = n_older / max(n_live, 1)
        if share > self._adjustment.drain_share and self._since_switch < self._adjustment.drain_limit:
            return None
        reason = f"{n_older:,} of {n_live:,} subscriptions are left to the older plan"
        return unite(registrar, fetch, reason, tuple(self.window.totals().tolist()))


def relocate(
    planned: LocalAdjustment,
    registrar: Registrar,
    fetch: Fetch,
    reason: str,
    selector: str,
    selection_s: float,
) -> Adjusted:
    """Carry a local adjustment out."""
    before = registrar.plan.number
    migrated = registrar.relocate(planned.plan, planned.cells, fetch)
    record = Adjustment(
        "local",
        0,
        "",
        reason,
        before,
        planned.plan.number,
        tuple(planned.before.tolist()),
        tuple(planned.after.tolist()),
        selector=selector,
        steps=step_records(planned.steps),
        n_subscriptions=migrated.n_subscriptions,
        n_bytes=migrated.n_bytes,
        selection_s=selection_s,
    )
    return Adjusted(migrated, record)


def switch(considered: Considered, registrar: Registrar, reason: str) -> Adjusted:
    """Begin to route new subscriptions by a new plan."""
    running = registrar.plan
    plan: Plan = replace(considered.plan, number=running.number + 1)
    registrar.switch(plan)
    record = Adjustment(
        "switch",
        0,
        "",
        reason,
        running.number,
        plan.number,
        tuple(considered.running.tolist()),
        tuple(considered.renewed.tolist()),
    )
    return Adjusted(nothing_migrated(), record)


def unite(registrar: Registrar, fetch: Fetch, reason: str, loads: tuple[float, ...]) -> Adjusted:
    """Move what is left under the older plan and drop it."""
    numbers = registrar.plan_numbers
    assert numbers.older is not None
    migrated, dropped = registrar.unite(fetch)
    record = Adjustment(
        "unite",
        0,
        "",
        reason,
        numbers.older,
        numbers.newest,
        loads,
        n_subscriptions=migrated.n_subscriptions,
        n_bytes=migrated.n_bytes,
    )
    return Adjusted(migrated, record, dropped)


def controller_of(settings: Settings, background: Executor | None = None) -> LoadController | None:
    """Make the controller of a job; None where there is nothing to adjust."""
    if settings.adjustment.scope == "off" or settings.n_workers == 1:
        return None
    return LoadController(settings, background)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")


def _done(work: Callable[[], Considered]) -> Future[Considered]:
    """Do the work here and now."""
    future: Future[Considered] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
    return future
