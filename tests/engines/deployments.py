"""A registrar and its workers without an engine, and a plain account of who has to store what."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engines.streams import (
    SETTINGS,
    TOKENIZER,
    events_of,
    matches_of,
    publish,
    subscribe,
    unsubscribe,
    updates_of,
)
from matching.scan import cells_of
from ps2stream.arrays import Int64s
from ps2stream.arrow import concat
from ps2stream.balance.ownership import Ownership
from ps2stream.matching.contract import FOREVER, Subscriptions
from ps2stream.matching.index import GI2
from ps2stream.model.schemas import BEFORE_ALL_SEQS, EVENTS, empty
from ps2stream.model.space import WORLD, Grid, Region
from ps2stream.partitioning.plan import Plan, owner
from ps2stream.registry.segments import BEGIN, BOUNDS, SEGMENT, changes
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.heap_host import HeapHost
from ps2stream.roles.living import as_stored
from ps2stream.roles.migration import Migrated
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker import Worker
from ps2stream.roles.worker_host import Standing
from ps2stream.routing.routing import Routing
from ps2stream.testing.generators import (
    VOCABULARY,
    random_expression,
    random_point,
    random_region,
    random_text,
)
from ps2stream.text.frequencies import Frequencies, frequency
from routing.plans import text_plan

TERMS: list[int] = np.unique(TOKENIZER.tokenize(pa.array(VOCABULARY)).values).tolist()
N_WORKERS = 4
LATER = 1 << 40


def random_plan(rng: random.Random, number: int = 1, bits: int = 3) -> Plan:
    """Divide space and terms at random, with frequencies that order terms in a way of their own."""
    counted = sorted(rng.sample(TERMS, rng.randint(1, len(TERMS))))
    counts = np.array([rng.randint(1, 9) for _ in counted])
    frequencies = Frequencies(np.array(counted, np.uint64), counts)
    grid = Grid.over(rng.choice([WORLD, (-60.0, -40.0, 100.0, 70.0)]), bits)
    return replace(text_plan(rng, N_WORKERS, bits, TERMS, frequencies), number=number, grid=grid)


def random_edit(rng: random.Random, plan: Plan) -> Ownership:
    """Hand over or divide some cells."""
    ownership = Ownership(plan)
    for _ in range(rng.randint(1, 6)):
        cells = np.unique([rng.randrange(plan.grid.n_cells) for _ in range(rng.choice((1, 5, 20)))])
        source, destination = rng.choice(sorted(ownership.owners(int(cells[0])))), rng.randrange(N_WORKERS)
        if rng.random() < 0.5:
            ownership.hand_over(cells, source, destination)
        else:
            terms = np.array(rng.sample(TERMS, rng.randint(1, len(TERMS))), np.uint64)
            ownership.divide(int(cells[0]), terms, source, destination)
    return ownership


def local_stream(n_events: int, seed: int) -> pa.RecordBatch:
    """Draw events of subscribers who mostly ask for a few cells: there is something to move.

    A third is published, near some region that is there; few subscribers leave, and some ask anew.
    """
    rng = random.Random(seed)
    live: dict[str, tuple[float, float, float, float]] = {}
    rows = []
    for seq in range(1, n_events + 1):
        drawn = rng.random()
        if drawn < 0.33:
            lon, lat = random_point(rng, rng.choice(list(live.values())) if live else None)
            rows.append(publish(seq, f"p{seq}", random_text(rng), lon, lat))
        elif drawn < 0.45 and live:
            name = rng.choice(list(live))
            del live[name]
            rows.append(unsubscribe(seq, name))
        else:
            name = f"s{rng.randrange(n_events // 2)}"
            live[name] = random_region(rng) if rng.random() < 0.2 else _small_region(rng)
            bounds = dict(zip(BOUNDS, live[name], strict=True))
            rows.append(subscribe(seq, name, random_expression(rng), **bounds))
    return events_of(*rows)


def _small_region(rng: random.Random) -> tuple[float, float, float, float]:
    west, south = rng.uniform(-180, 180), rng.uniform(-90, 60)
    east = west + rng.uniform(0, 60)
    return (west, south, east - 360 if east > 180 else east, south + rng.uniform(0, 30))


Holders = dict[int, set[int]]


@dataclass(slots=True)
class Deployment:
    """What an engine does between two batches, step by step; ``log`` has all segments so far."""

    plan: Plan
    registrar: Registrar = field(init=False)
    hosts: list[HeapHost] = field(init=False)
    log: list[tuple[pa.RecordBatch, Routing[int]]] = field(default_factory=list)
    plans: dict[int, Plan] = field(default_factory=dict)
    _migrated: list[pa.RecordBatch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.registrar = Registrar(self.plan)
        standing = Standing(0, SETTINGS.index_settings(self.plan))
        self.hosts = [HeapHost(i, standing) for i in range(self.plan.n_workers)]
        self.plans[self.plan.number] = self.plan

    @property
    def segments(self) -> list[pa.RecordBatch]:
        return [segment for segment, _ in self.log]

    @property
    def workers(self) -> list[Worker[GI2]]:
        return [host.worker for host in self.hosts]

    def fetch(self, worker: int, seqs: Int64s) -> Subscriptions:
        return self.hosts[worker].fetch(seqs)

    def process(self, events: pa.RecordBatch | None = None) -> pa.RecordBatch:
        """Decide on the updates of a batch, after what was moved before it."""
        decided = self.registrar.decide(updates_of(empty(EVENTS) if events is None else events))
        segment = concat([*self._migrated, decided.segment])
        self._migrated.clear()
        standing = Standing(len(self.log), SETTINGS.index_settings(self.registrar.plan))
        for host in self.hosts:
            host.take(segment)
            host.stand(standing)
            host.apply()
        self.log.append((segment, self.registrar.plan_numbers))
        return segment

    def relocate(self, ownership: Ownership) -> Migrated:
        plan = ownership.plan(self.registrar.plan.number + 1)
        migrated = self.registrar.relocate(plan, ownership.changed_cells, self.fetch)
        return self._moved(plan, migrated)

    def switch(self, plan: Plan) -> None:
        plan = replace(plan, number=self.registrar.plan.number + 1)
        self.plans[plan.number] = plan
        self.registrar.switch(plan)

    def unite(self) -> Migrated:
        migrated, _ = self.registrar.unite(self.fetch)
        return self._moved(self.registrar.plan, migrated)

    def disturb(self, rng: random.Random) -> str:
        """Adjust the routing in one of the ways there are; return which."""
        way = rng.choice(["nothing", "relocate", "unite" if self.registrar.routing.older else "switch"])
        if way == "relocate":
            self.relocate(random_edit(rng, self.registrar.plan))
        elif way == "switch":
            self.switch(random_plan(rng))
        elif way == "unite":
            self.unite()
        return way

    def restored(self, segments: Iterable[pa.RecordBatch] | None = None) -> Registrar:
        """Build the registrar that a new process would build from the log, or from other segments."""
        plans = self.log[-1][1].map(lambda number: self.plans[number])
        registrar = Registrar(plans.newest)
        registrar.restore(self.segments if segments is None else segments, plans)
        return registrar

    def snapshot(self) -> pa.RecordBatch:
        """Lay out what lives as a snapshot does."""
        live = list(self.live())
        begun = concat([empty(SEGMENT), *(changes(segment, BEGIN) for segment in self.segments)])
        begun = begun.filter(pc.is_in(begun.column("seq_from"), pa.array(live, pa.int64())))
        return as_stored(begun, self.registrar.living().routing)

    def _moved(self, plan: Plan, migrated: Migrated) -> Migrated:
        self.plans[plan.number] = plan
        self._migrated.append(migrated.rows)
        return migrated

    def live(self) -> dict[int, dict[str, object]]:
        """Return the rows that began what lives, by seq."""
        live = set(self.registrar.registry.live_seqs().tolist())
        begun = (row for segment in self.segments for row in changes(segment, BEGIN).to_pylist())
        return {row["seq_from"]: row for row in begun if row["seq_from"] in live}

    def holders(self) -> Holders:
        """Say who stores what lives."""
        found: Holders = {}
        live = np.array(sorted(self.live()), np.int64)
        for worker in self.workers:
            stored = worker.index.stored(live)
            assert (stored.seq_to == FOREVER).all()
            for seq in stored.seq_from.tolist():
                found.setdefault(seq, set()).add(worker.worker_id)
        return found

    def expected_holders(self) -> Holders:
        """Say who has to, cell by cell and clause by clause."""
        expected: Holders = {}
        for seq, row in self.live().items():
            expected[seq] = holders_of(self.plans[self.registrar.plan_numbers.of(seq)], row)
        return expected

    def matches(self, publications: pa.RecordBatch) -> list[tuple[int, str, int]]:
        """Match publications as if they came now, after all that began and ended."""
        seqs = pa.array(LATER + np.arange(publications.num_rows))
        publications = publications.set_column(0, publications.schema.field("seq"), seqs)
        packets = Dispatcher(self.registrar.grid_ts, TOKENIZER).dispatch(publications).packets
        found = [
            self.workers[worker].match(packet, BEFORE_ALL_SEQS, self.registrar.routing.switch_seq)
            for worker, packet in packets.items()
        ]
        return sorted(match for batch in found for match in matches_of(batch))


def holders_of(plan: Plan, row: dict[str, object]) -> set[int]:
    """Say who has to store a subscription by a plan."""
    region = Region(*(row[name] for name in BOUNDS))  # type: ignore[arg-type]
    return {
        int(owner(plan.h1, cell, np.uint64(term)))
        for cell in cells_of(plan.grid, region)
        for term in posting_terms(plan, row)
    }


def posting_terms(plan: Plan, row: dict[str, object]) -> list[int]:
    """Return the rarest term of each clause by the frequencies of a plan."""
    clauses: list[list[int]] = row["clauses"]  # type: ignore[assignment]
    return [_rarest_first(plan, clause)[0] for clause in clauses]


def _rarest_first(plan: Plan, clause: Iterable[int]) -> list[int]:
    return sorted(clause, key=lambda term: (int(frequency(plan.frequencies, np.uint64(term))), term))
