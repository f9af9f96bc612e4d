"""Compile or load every kernel ahead of the first event; as a program, do that and nothing else."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa

from ps2stream.adjusting.controller import LoadController
from ps2stream.adjusting.recent_sample import CellEvidence, RecentSample
from ps2stream.adjusting.repartitioning import consider
from ps2stream.arrays import frozen
from ps2stream.balance.halves import divide_terms, merged_load
from ps2stream.balance.ownership import Ownership
from ps2stream.balance.selection import MovableCells, selector_named
from ps2stream.config import Settings
from ps2stream.engines.inline import InlineEngine
from ps2stream.kernels import one_compiler
from ps2stream.matching.contract import IndexSettings
from ps2stream.matching.steady import SteadyGI2
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.partitioning.load import STANDARD_COSTS
from ps2stream.planning.first_plan import first_plan
from ps2stream.registry.names import Names
from ps2stream.registry.segments import MOVE, changes, rows_of, subscriptions_of
from ps2stream.roles.worker_host import fetching
from ps2stream.sinks.parquet import write_matches_to
from ps2stream.sinks.partitions import partitions_of

_WORLD = {"min_lon": -180.0, "min_lat": -90.0, "max_lon": 180.0, "max_lat": 90.0}
_EVENTS = [
    {"seq": 1, "op": SUBSCRIBE, "id": "a", "expression": "warm AND (kernel OR café)", **_WORLD},
    {"seq": 2, "op": SUBSCRIBE, "id": "b", "expression": "warm OR kernel", **_WORLD},
    {"seq": 3, "op": PUBLISH, "id": "p", "lat": 0.0, "lon": 0.0, "text": "a warm kernel, crème"},
    {"seq": 4, "op": UNSUBSCRIBE, "id": "a"},
    {"seq": 5, "op": PUBLISH, "id": "beyond the pole", "lat": 91.0, "lon": 0.0, "text": ""},
]
#: More than new arrays and tables have capacity for: they grow.
_N_MORE = 3_000
_MORE = [
    {"seq": 6 + n, "op": SUBSCRIBE, "id": str(n), "expression": f"kernel{n}", **_WORLD}
    for n in range(_N_MORE)
]


def warm() -> None:
    """Run a few events through all stages, so that no kernel is compiled while others wait.

    The kinds of arrays must be those of real use: a kernel is compiled for each kind apart.
    """
    events = pa.RecordBatch.from_pylist(_EVENTS + _MORE, schema=EVENTS)
    settings = Settings(n_workers=2, n_dispatchers=1)
    with one_compiler():
        controller = LoadController(settings)
        engine = InlineEngine(first_plan(events, settings), settings, controller)
        write_matches_to(io.BytesIO(), engine.process(events).matches.to_batches())
        for worker in engine.workers:
            worker.index.compacted(0)
        engine.registrar.registry.compacted(0)
        partitions_of(events.column("id"), 2)
        _adjust(engine, controller.recent)


def _adjust(engine: InlineEngine, recent: RecentSample) -> None:
    """Go through all that load adjustment does; the first real one must not wait for kernels either."""
    registrar = engine.registrar
    plan = registrar.plan
    fetch = fetching(engine.hosts)
    evidence = CellEvidence(recent, registrar, 0)
    cell = plan.grid.cell(0.0, 0.0)
    sample = evidence(cell)
    ownership = Ownership(plan)
    owners = ownership.owners_of(cell, sample.clause_terms)
    divide_terms(sample, STANDARD_COSTS)
    merged_load(sample, np.arange(len(owners), dtype=np.int32), 0, 1, STANDARD_COSTS)
    selector_named("gr").select(MovableCells(np.ones(2), np.ones(2, np.int64)), 1.0)
    ownership.hand_over(np.arange(plan.grid.n_cells), int(owners[0]), 1 - int(owners[0]))
    rows = registrar.relocate(ownership.plan(plan.number + 1), ownership.changed_cells, fetch).rows
    for worker in engine.workers:
        worker.update(rows)
        worker.index = worker.index.counted_in(plan.grid)
    _reside(rows, engine.settings.index_settings(plan))
    live = registrar.some_live(1, np.random.default_rng(0), fetch)
    considered = consider(recent.sample(live, 1), registrar.plan, engine.settings)
    registrar.switch(considered.plan)
    registrar.unite(fetch)


def _reside(rows: pa.RecordBatch, settings: IndexSettings) -> None:
    """Do what only resident workers do: name subscriptions themselves, and compact while they match."""
    moves = changes(rows, MOVE)
    moved = subscriptions_of(moves)
    index = SteadyGI2.create(settings)
    index.begin_compaction(0)
    index.insert(moved, frozen(rows_of(moves, 0)))
    index.insert(moved)
    index.end(moved.seq_from, moved.seq_from)
    while index.is_compacting:
        index.go_on_compacting()
    names, seqs = Names(), np.arange(_N_MORE)
    names.enter(seqs, pa.array(map(str, seqs), pa.string()))
    names.ids(seqs)
    names.end(seqs, seqs)
    names.forget(len(seqs))


if __name__ == "__main__":
    warm()
