"""A copy that is made by the procedure of docs/cluster.md while a job goes on is a state to go on from."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.streams import SETTINGS, TOKENIZER, plan_for, publications_of, random_stream, updates_of
from ps2stream.errors import StateError
from ps2stream.model.matches import Match
from ps2stream.roles.dispatcher import Dispatcher
from ps2stream.roles.merger import Merger
from ps2stream.roles.worker_host import Standing
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.state.host_files import HostFiles
from ps2stream.state.ledger import BatchRange
from ps2stream.state.state import State
from ps2stream.store.contract import Store
from ps2stream.store.memory import MemoryStore
from ps2stream.testing import oracle
from state.drivers import Claim
from state.turns import InTurns

_PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
_EVENTS = random_stream(600, 5, n_subscription_ids=60, invalid_share=0.0)


@pytest.fixture(scope="module")
def procedure() -> dict[str, Any]:
    """Run the block of the page that has the procedure; what it defines is what users call."""
    blocks = re.findall(r"^```python\n(.*?)^```", _PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if "def copy_state" in block)
    names: dict[str, Any] = {}
    exec(block, names)
    return names


@dataclass
class Driver:
    """A driver without an engine: `steps` stops after each thing that it writes."""

    store: Store
    local: Path
    batch_events: int

    def steps(self) -> Iterator[None]:
        state = self._state()
        yield
        sink = ParquetSink(self.store.under("out"))
        sink.claim(state.job_file.job_id)
        registrar, ledger = state.restore_registrar(), state.ledger
        for batch_id in itertools.count(ledger.finished() + 1):
            begun = self._begin(state, batch_id)
            yield
            if begun.upto == begun.after:
                return
            events = _EVENTS.slice(begun.after[0], begun.upto[0] - begun.after[0])
            if ledger.decided() < batch_id:
                if batch_id % 3 == 2:
                    state.snapshot(batch_id - 1, registrar)
                    yield
                ledger.decide(batch_id, registrar.decide(updates_of(events)).segment, registrar.plan_numbers)
                yield
            horizon = ledger.last_seq(batch_id - 1)
            standing = Standing(batch_id, SETTINGS.index_settings(registrar.plan), horizon)
            packets = Dispatcher(registrar.grid_ts, TOKENIZER).dispatch(publications_of(events)).packets
            for worker, packet in packets.items():
                found = state.worker_host(worker, standing).match([packet]).found
                sink.write_matches(batch_id, worker, Merger(registrar.registry).pieces(found))
                yield
            ledger.finish(batch_id, events.column("seq")[-1].as_py())
            yield

    def _state(self) -> State:
        kept = State(self.store.under("state"), HostFiles(self.local), on_many_hosts=False)
        state = kept.taken_over(Claim(kept.store))  # type: ignore[arg-type]
        if not state.job_file.exists():
            state.create(plan_for(_EVENTS), SETTINGS)
        return state.open(SETTINGS)

    def _begin(self, state: State, batch_id: int) -> BatchRange:
        """Return the events of a batch: those that it had before, if it has begun already."""
        begun = state.ledger.begun()
        if begun is None or begun.batch_id < batch_id:
            (after,) = begun.upto if begun else (0,)
            begun = BatchRange(batch_id, (after,), (min(after + self.batch_events, _EVENTS.num_rows),))
            state.ledger.begin(begun)
        return begun

    def matches(self) -> list[Match]:
        found = ParquetSink(self.store.under("out")).matches
        tables = [pq.read_table(pa.BufferReader(found.get(key))) for key in found.list()]
        return sorted(Match(**row) for table in tables for row in table.to_pylist())


@dataclass
class Meanwhile:
    """Let a driver go on whenever somebody else asks the store, at first for whole batches."""

    rng: random.Random
    drive: Iterator[None]
    most: int
    n_asked: int = 0

    def step(self) -> None:
        self.n_asked += 1
        most = self.most if self.n_asked < 20 else min(1, self.most)
        if self.rng.random() < 0.5:
            for _ in range(self.rng.randint(0, most)):
                next(self.drive, None)


def take(drive: Iterator[None], n_steps: int) -> None:
    for _ in range(n_steps):
        next(drive)


def copied(
    procedure: dict[str, Any], store: Store, meanwhile: Meanwhile, between: Callable[[], None] = lambda: None
) -> MemoryStore:
    busy, copy = InTurns(store, meanwhile), MemoryStore()  # type: ignore[arg-type]
    finished = procedure["copy_state"](busy.under("state"), copy.under("state"))
    between()
    procedure["copy_sink"](busy.under("out"), copy.under("out"), finished)
    return copy


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))]
)
def test_a_copy_of_any_moment_can_be_gone_on_from(
    procedure: dict[str, Any], tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    first = Driver(MemoryStore(), tmp_path / "first", rng.choice([10, 17]))
    drive = first.steps()
    take(drive, rng.randint(5, 60))
    copy = copied(procedure, first.store, Meanwhile(rng, drive, most=rng.choice([0, 1, 12, 12])))
    second = Driver(copy, tmp_path / "second", rng.choice([10, 29]))
    expected = sorted(oracle.run(pa.Table.from_batches([_EVENTS])).matches)
    assert len(second.matches()) < len(expected)
    for each in (drive, second.steps()):
        list(each)
    assert len(expected) > 400
    assert first.matches() == expected
    assert second.matches() == expected


@dataclass
class OneBurst:
    """Let a driver finish a batch, once; other steps are nothing."""

    drive: Iterator[None]

    def step(self) -> None:
        """Do nothing: a store that is asked goes on at once."""

    def burst(self) -> None:
        take(self.drive, 8)
        self.drive = itertools.repeat(None)


class BurstBeforeLedger(InTurns):
    """A store whose driver finishes batches between a copier's readings of the manifest and of the ledger."""

    def get(self, key: str) -> pa.Buffer:
        if key.startswith("ledger-"):
            self.turns.burst()  # type: ignore[attr-defined]
        return self.store.get(key)


def test_a_ledger_that_is_newer_than_the_manifest_is_noticed(
    procedure: dict[str, Any], tmp_path: Path
) -> None:
    first = Driver(MemoryStore(), tmp_path / "first", 10)
    drive = first.steps()
    # The next batch comes without a snapshot: that would delete files, and the copy would be refused for it.
    ledger = State.among_hosts(first.store.under("state"))
    while next(drive) is None and ledger.newest().ledger.finished() != 5:
        pass
    copy, burst = MemoryStore(), OneBurst(drive)
    source = BurstBeforeLedger(first.store.under("state"), burst)  # type: ignore[arg-type]
    finished = procedure["copy_state"](source, copy.under("state"))
    procedure["copy_sink"](first.store.under("out"), copy.under("out"), finished)
    second = Driver(copy, tmp_path / "second", 29)
    list(second.steps())
    assert second.matches() == sorted(oracle.run(pa.Table.from_batches([_EVENTS])).matches)


def test_after_a_driver_that_died_while_it_took_over_it_says_to_copy_all(
    procedure: dict[str, Any], tmp_path: Path
) -> None:
    first = Driver(MemoryStore(), tmp_path, 10)
    take(first.steps(), 20)
    Claim(first.store.under("state"))
    with pytest.raises(StateError, match="stop it and copy all"):
        procedure["copy_state"](first.store.under("state"), MemoryStore())


def test_files_of_later_batches_are_not_copied(procedure: dict[str, Any], tmp_path: Path) -> None:
    first = Driver(MemoryStore(), tmp_path, 10)
    drive = first.steps()
    take(drive, 40)
    quiet = Meanwhile(random.Random(2), drive, most=0)
    copy = copied(procedure, first.store, quiet, between=lambda: take(drive, 30))
    finished = State.among_hosts(copy.under("state")).newest().ledger.finished()
    there = [key for key in copy.list("out") if "batch-" in key]
    assert there
    assert max(int(re.findall(r"batch-(\d+)", key)[0]) for key in there) <= finished
    assert len(there) < len(first.store.list("out")) - 1
