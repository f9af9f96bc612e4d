"""A dispatcher that stays: it follows the log, and routes each publication by the plan of its position.

What it keeps is H2, a table for each generation of plans, and the plans themselves; all of it is a function
of the log. An entry that moves cells takes effect at a position, so publications on either side of it are
routed differently, in whatever order they come, and nothing has to stop.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrow import pick
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.segments import BEGIN, END, MOVE, changes, postings_of
from ps2stream.resident.entries import Entry, EntryKind, PlanPlace
from ps2stream.resident.positions import NOTHING_YET
from ps2stream.roles.dispatcher import Dispatched, Dispatcher
from ps2stream.routing.index import GridT
from ps2stream.routing.layout import Postings
from ps2stream.routing.routing import Routing
from ps2stream.text.tokenizer import Tokenizer

#: Read a plan from where an entry says it is.
ReadPlan = Callable[[PlanPlace], Plan]


class RoutingAt(NamedTuple):
    """By which plans publications at positions beyond ``since`` go."""

    since: int
    plans: Routing[Plan]
    generation: int


class _Leaving(NamedTuple):
    """Subscriptions that ended; no publication at or beyond ``seq_to`` waits for them."""

    seq_to: int
    generation: int
    postings: Postings


class ResidentDispatcher:
    """Route publications by their positions; ``applied``: all of the log up to this seq is known."""

    def __init__(self, tokenizer: Tokenizer, read_plan: ReadPlan) -> None:
        self._tokenizer = tokenizer
        self._read_plan = read_plan
        self._grid_ts: dict[int, GridT] = {}  # by generation
        self._routings: list[RoutingAt] = []
        self._leaving: deque[_Leaving] = deque()
        self.applied = NOTHING_YET

    def follow(self, entry: Entry) -> None:
        """Take in what was decided next; it shows from its position on."""
        self._reroute(entry)
        for change in (BEGIN, MOVE) if entry.kind is EntryKind.UNITE else (BEGIN,):
            for generation, rows in _by_generation(changes(entry.segment, change), entry):
                self._grid_ts[generation].add(postings_of(rows))
        for generation, rows in _by_generation(changes(entry.segment, END), entry):
            last = int(rows.column("seq_to").to_numpy().max())
            self._leaving.append(_Leaving(last, generation, postings_of(rows)))
        self.applied = max(self.applied, entry.upto)

    def routing_at(self, position: int) -> RoutingAt:
        """Return by which plans a publication goes."""
        return self._routings[self._routing_index(position)]

    def dispatch(
        self, publications: pa.RecordBatch, *, with_sample: bool = True
    ) -> Iterator[tuple[RoutingAt, Dispatched]]:
        """Route publications, whose ``seq`` is their position; the log must be applied up to there."""
        positions = publications.column("seq").to_numpy()
        sinces = np.array([each.since for each in self._routings], np.int64)
        numbers = np.maximum(np.searchsorted(sinces, positions, side="left") - 1, 0)
        for number in np.unique(numbers):
            routing = self._routings[number]
            part = pick(publications, numbers == number)
            dispatcher = Dispatcher(self._grid_ts_of(routing), self._tokenizer)
            yield routing, dispatcher.dispatch(part, with_sample=with_sample)

    def forget(self, horizon: int) -> None:
        """Drop what only publications below a position would need: ends, and plans that are out of use."""
        while self._leaving and self._leaving[0].seq_to <= horizon:
            _, generation, postings = self._leaving.popleft()
            if generation in self._grid_ts:
                self._grid_ts[generation].remove(postings)
        self._routings = self._routings[self._routing_index(horizon) :]
        used = {
            each.generation - number for each in self._routings for number in range(len(each.plans.parts))
        }
        self._grid_ts = {generation: each for generation, each in self._grid_ts.items() if generation in used}

    def _routing_index(self, position: int) -> int:
        return max(0, bisect.bisect_left(self._routings, position, key=lambda each: each.since) - 1)

    def _reroute(self, entry: Entry) -> None:
        """Begin to route by other plans, if an entry names any."""
        known = self._routings[-1] if self._routings else None
        numbers = entry.routing.map(lambda place: place.number)
        if known is not None and known.plans.map(lambda plan: plan.number) == numbers:
            return
        plans = entry.routing.map(self._read_plan)
        since = entry.since if known is not None else BEFORE_ALL_SEQS
        for number, plan in enumerate(plans.parts):
            generation = entry.generation - number
            if generation not in self._grid_ts:
                self._grid_ts[generation] = GridT.create(plan)
        self._routings.append(RoutingAt(since, plans, entry.generation))

    def _grid_ts_of(self, routing: RoutingAt) -> Routing[GridT]:
        """Return H1 of a plan with H2 of its generation, which may have grown since."""
        newest, *older = (
            self._grid_ts[routing.generation - number].adjusted(plan)
            for number, plan in enumerate(routing.plans.parts)
        )
        return Routing(newest, older[0] if older else None, routing.plans.switch_seq)


def _by_generation(rows: pa.RecordBatch, entry: Entry) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Part rows by the generation of plans that their subscriptions go by."""
    for generation, is_own in entry.by_generation(rows.column("seq_from").to_numpy()):
        if is_own.any():
            yield generation, pick(rows, is_own)
