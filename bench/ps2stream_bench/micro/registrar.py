"""What updates cost the registrar: parsing, and deciding, with H2 and the registry as large as they get.

Time is processor time of the one thread that works.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s
from ps2stream.model.schemas import EVENTS, UNSUBSCRIBE, UPDATES
from ps2stream.partitioning.plan import Plan
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.text.tokenizer import Tokenizer

_LOADED_AT_ONCE = 100_000


class Measured(NamedTuple):
    """What one batch of updates came to."""

    parsed_per_s: float
    decided_per_s: float
    updates_per_s: float


def loaded(plan: Plan, tokenizer: Tokenizer, subscribes: pa.Table) -> Registrar:
    """Return a registrar that has decided on all of some subscribe events."""
    registrar = Registrar(plan)
    for batch in subscribes.select(UPDATES.names).combine_chunks().to_batches(_LOADED_AT_ONCE):
        registrar.decide(compile_updates(batch, tokenizer)[0])
    return registrar


def turns(
    registrar: Registrar, tokenizer: Tokenizer, subscribes: pa.Table, live_ids: pa.Array, n_updates: int
) -> Iterator[Measured]:
    """Decide on batches of updates, half of them new subscriptions and half the ends of live ones."""
    for start in range(0, subscribes.num_rows, n_updates // 2):
        part = subscribes.slice(start, n_updates // 2)
        yield _measure(registrar, tokenizer, _mixed(part, live_ids.slice(start, part.num_rows)))


def _mixed(subscribes: pa.Table, ended: pa.Array) -> pa.RecordBatch:
    """Let an unsubscribe follow every subscribe."""
    n = subscribes.num_rows
    columns = {"op": pa.repeat(UNSUBSCRIBE, n), "id": ended}
    unsubscribes = pa.Table.from_arrays(
        [columns.get(field.name, pa.nulls(n, field.type)) for field in EVENTS], schema=EVENTS
    )
    order: Int64s = np.arange(2 * n).reshape(2, n).T.ravel()
    events = pa.concat_tables([subscribes, unsubscribes]).take(pa.array(order))
    seq = 2 * int(subscribes["seq"][0].as_py()) + np.arange(2 * n)
    numbered = events.set_column(0, EVENTS.field("seq"), pa.array(seq))
    (batch,) = numbered.select(UPDATES.names).combine_chunks().to_batches()
    return batch


def _measure(registrar: Registrar, tokenizer: Tokenizer, updates: pa.RecordBatch) -> Measured:
    n = updates.num_rows
    started = time.process_time()
    compiled, _ = compile_updates(updates, tokenizer)
    parsed = time.process_time()
    decided = registrar.decide(compiled)
    done = time.process_time()
    if decided.segment.num_rows != n:
        raise ValueError(f"{n} updates must give as many rows of the log; got {decided.segment.num_rows}")
    return Measured(n / (parsed - started), n / (done - parsed), n / (done - started))
