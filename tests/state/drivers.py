"""Drivers of a state without a stream: what they write, and what readers see of it."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from engines.streams import SETTINGS
from ps2stream.matching.contract import FOREVER
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.segments import BEGIN, SEGMENT
from ps2stream.routing.routing import Routing
from ps2stream.state.epochs import Epochs, FencedStore
from ps2stream.state.host_files import HostFiles
from ps2stream.state.state import State
from ps2stream.store.contract import Store

NOWHERE = HostFiles(Path("/nowhere"))


def segment(*ids: str) -> pa.RecordBatch:
    rows = [
        {
            "change": BEGIN,
            "seq_from": 0,
            "seq_to": FOREVER,
            "id": each,
            "expression": "fire",
            "clauses": [[1]],
            "workers": [0],
        }
        for each in ids
    ]
    return pa.RecordBatch.from_pylist(rows, SEGMENT)


def ids_of(state: State, upto: int | None = None) -> list[str]:
    """Return all that the log has begun; a snapshot keeps its order."""
    return [each for _, part in state.log.read(upto=upto) for each in part.column("id").to_pylist()]


class Claim:
    """As much of a lease as a state needs: an epoch, taken whether or not the driver before lives."""

    def __init__(self, store: Store) -> None:
        self.epochs, self.store = Epochs(store.under("epochs")), store
        self.epoch = self.epochs.newest() + 1
        while not self.epochs.claim(self.epoch, "driver"):
            self.epoch += 1

    def fenced(self) -> FencedStore:
        return FencedStore(self.store, self.epochs, self.epoch)


def taken_over(store: Store) -> State:
    return State(store, NOWHERE).taken_over(Claim(store))  # type: ignore[arg-type]


def as_a_task_has_it(state: State) -> State:
    """Return a state without what the process of its driver remembers, as one that was sent it has it."""
    return replace(state, store=copy(state.store))


def seen(store: Store) -> object:
    """Return all that readers see of a state."""
    state = State(store, NOWHERE).newest()
    return (
        state.epoch,
        state.log.manifest(),
        ids_of(state),
        state.ledger.decided(),
        state.ledger.last_seq(),
        state.plan().partitioner,
        state.adjustments.read(),
        state.mailbox.read_status(),
        state.job_file.job_id,
    )


def begun(store: Store, plan: Plan) -> State:
    """Make a state with a driver that has decided and finished some batches."""
    state = taken_over(store)
    state.create(plan, SETTINGS).open(SETTINGS)
    for batch_id in range(3):
        state.ledger.decide(batch_id, segment(f"s{batch_id}"), Routing(1))
        state.ledger.finish(batch_id, batch_id)
    return state
