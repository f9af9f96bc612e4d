"""A job that adjusts its routing and is killed at any step goes on from its state as if nothing had happened.

The steps are those of the Spark engine, in its order; a kill is that nothing but the files is left.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from engines.deployments import N_WORKERS, local_stream, random_edit, random_plan
from engines.streams import SETTINGS, TOKENIZER, batches_of, publications_of, seqs_of, updates_of
from ps2stream.arrow import concat
from ps2stream.matching.index import GI2
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.registry.index import Registry
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.merger import Merger
from ps2stream.roles.migration import Migrated, nothing_migrated
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker_host import Standing, fetching
from ps2stream.state.state import State
from ps2stream.testing import oracle

CHOSEN = replace(SETTINGS, n_workers=N_WORKERS)

Found = list[tuple[object, ...]]


class Killed(Exception):  # noqa: N818
    """The process is gone."""


@dataclass(slots=True)
class Job:
    """Process batches on a state; ``kill_share`` of the steps end in a kill."""

    directory: Path
    rng: random.Random
    kill_share: float
    horizon: int = BEFORE_ALL_SEQS
    made: set[str] = field(default_factory=set)
    n_kills: int = 0
    state: State = field(init=False)
    registrar: Registrar = field(init=False)

    def start(self) -> None:
        self.state = State.at(self.directory).open(CHOSEN)
        self.registrar = self.state.restore_registrar()
        self.state.drop_plans()

    def process(self, batch_id: int, batch: pa.RecordBatch) -> Found:
        """Run a batch until it comes through."""
        while True:
            try:
                if self.state.ledger.decided() < batch_id:
                    if batch_id and self.rng.random() < 0.2:
                        self.state.snapshot(batch_id - 1, self.registrar)
                    self._update(batch_id, batch)
                self._may_be_killed()
                found = self._match(batch_id, batch)
                self._may_be_killed()
            except Killed:
                self.n_kills += 1
                self.start()
            else:
                self.horizon = max([self.horizon, *seqs_of(batch)])
                return found

    def _update(self, batch_id: int, batch: pa.RecordBatch) -> None:
        plan = self.registrar.plan
        dropped = [self.registrar.compact(self.horizon)]
        migrated = self._adjust(batch_id, dropped)
        if self.registrar.plan is not plan:
            self.state.plans.add(self.registrar.plan)
        self._may_be_killed()
        decided = self.registrar.decide(updates_of(batch))
        self._may_be_killed()
        # Even a batch of nothing is written, so that the log tells which batches are done.
        segment = concat([migrated.rows, decided.segment])
        self.state.ledger.decide(batch_id, segment, self.registrar.plan_numbers)
        self._may_be_killed()
        self.state.drop_plans()
        for name in filter(None, dropped):
            self.state.host.drop(name)

    def _adjust(self, batch_id: int, dropped: list[str | None]) -> Migrated:
        registrar, rng = self.registrar, self.rng
        standing = Standing(batch_id - 1, CHOSEN.index_settings(registrar.plan), self.horizon)
        fetch = fetching([self.state.worker_host(worker, standing) for worker in range(N_WORKERS)])
        way = rng.choice(["nothing", "relocate", "unite" if registrar.routing.older else "switch"])
        self.made.add(way)
        number = registrar.plan.number + 1
        if way == "relocate":
            edited = random_edit(rng, registrar.plan)
            return registrar.relocate(edited.plan(number), edited.changed_cells, fetch)
        if way == "switch":
            registrar.switch(random_plan(rng, number))
        if way == "unite":
            migrated, no_more = registrar.unite(fetch)
            dropped.append(no_more)
            return migrated
        return nothing_migrated()

    def _match(self, batch_id: int, batch: pa.RecordBatch) -> Found:
        """Match as tasks in other processes do: with nothing but names of what is on disk."""
        names = self.registrar.routing.map(lambda stored: (stored.plan.number, stored.name))
        grid_ts = names.map(lambda part: self.state.open_grid_t(self.state.plans.get(part[0]), part[1]))
        packets = Dispatcher(grid_ts, TOKENIZER).dispatch(publications_of(batch)).packets
        settings = CHOSEN.index_settings(grid_ts.newest.plan)
        standing = Standing(batch_id, settings, self.horizon, self.registrar.routing.switch_seq)
        found = []
        for worker_id, packet in packets.items():
            with self.state.worker_host(worker_id, standing).lent() as worker:
                found.append(worker.match(packet, self.horizon, self.registrar.routing.switch_seq))
                self._may_be_killed()
        merged = Merger(self.state.open_registry(self.registrar.registry_name)).merge(found)
        return [tuple(row.values()) for row in merged.to_pylist()]

    def _may_be_killed(self) -> None:
        if self.rng.random() < self.kill_share:
            raise Killed


@pytest.mark.parametrize("kill_share", [0.0, 0.15])
@pytest.mark.parametrize("seed", range(2))
def test_kills_at_any_step_and_adjustments_of_any_kind_change_no_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, kill_share: float
) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(GI2, "should_compact", lambda self: rng.random() < 0.2)
    monkeypatch.setattr(Registry, "should_compact", lambda self: rng.random() < 0.2)
    State.at(tmp_path / "state").create(random_plan(rng), CHOSEN)
    job = Job(tmp_path / "state", rng, kill_share)
    job.start()
    events = local_stream(260, seed)
    found = [
        match for number, batch in enumerate(batches_of(events, 13)) for match in job.process(number, batch)
    ]
    expected = [tuple(match) for match in oracle.run(events).matches]
    assert found == expected
    assert len(found) > 10
    assert job.made == {"nothing", "relocate", "switch", "unite"}
    assert (job.n_kills > 3) == (kill_share > 0.0)
