"""Which subscriptions there are: what the job's log says, and what came in since.

The log holds what the job decided up to its last batch, and stays when events are dropped. The events
holds what came later. Both are read while others write them (``settled.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.deployment.decided_log import DecidedLog, decided_log
from ps2stream.deployment.deployment_events import DeploymentEvents
from ps2stream.deployment.home import Home
from ps2stream.deployment.settled import settled
from ps2stream.matching.contract import FOREVER
from ps2stream.model.schemas import REJECTED
from ps2stream.model.space import Region
from ps2stream.registry.segments import BEGIN, BOUNDS, END, SEGMENT
from ps2stream.roles.update_compiler import COMPILED_UPDATES, compile_updates
from ps2stream.state.state import State
from ps2stream.text.tokenizer import Tokenizer

_LOG = logging.getLogger(__name__)

#: A live subscription; ``seq`` is that of its subscribe.
LIVE = pa.schema([COMPILED_UPDATES.field(name) for name in ("seq", "id", "expression", *BOUNDS)])

_WORDS = pa.schema([*LIVE, ("is_subscribe", pa.bool_())])
_ROWS = pa.schema(
    [SEGMENT.field(name) for name in ("change", "seq_from", "seq_to", "id", "expression", *BOUNDS)]
)


class Decisions(NamedTuple):
    """What the job decided: rows that begin or end versions, complete up to a seq."""

    rows: pa.Table
    upto_seq: int


class Pending(NamedTuple):
    """Updates of a deployment, in order, and those that the job rejects."""

    valid: pa.Table
    rejected: pa.Table


def live_subscriptions(home: Home, ids: Sequence[str] | None = None) -> pa.Table:
    """Return the live subscriptions (schema LIVE) by seq, of some ids or all."""
    with closing(home.events()) as events:
        if events.pruned() and not home.has_state:
            _LOG.warning("%s was pruned and no job has kept a log: older ones are not shown", events)
        return settled(home, events, lambda state: _live(home, state, events, ids))


def at_point(live: pa.Table, lat: float, lon: float) -> pa.Table:
    """Return the subscriptions (schema LIVE) whose region holds a point."""
    corners = zip(*(live.column(name).to_pylist() for name in BOUNDS), strict=True)
    return live.filter(pa.array([Region(*each).contains(lon, lat) for each in corners], pa.bool_()))


def decisions(log: DecidedLog, ids: Sequence[str] | None = None) -> Decisions:
    """Read the job's log; without a job it is empty."""
    upto_seq = log.last_seq()
    parts = [_ROWS.empty_table()]
    for _, segment in log.read():
        seqs = segment.column("seq_from").to_numpy()
        ends = segment.column("seq_to").to_numpy()
        # A segment is all that its batch decided, so everything up to its newest seq is decided.
        decided = np.concatenate([seqs, ends[ends != FOREVER]])
        upto_seq = int(decided.max(initial=upto_seq))
        parts.append(pa.Table.from_batches([_of_ids(segment.select(_ROWS.names), ids)]))
    return Decisions(pa.concat_tables(parts), upto_seq)


def pending(
    events: DeploymentEvents, after_seq: int, stop_words: Iterable[str], ids: Sequence[str] | None = None
) -> Pending:
    """Read the updates of a deployment beyond a seq and apply the job's rules to each."""
    tokenizer = Tokenizer(stop_words)
    valid, rejected = [_WORDS.empty_table()], [REJECTED.empty_table()]
    for updates in events.updates(after_seq):
        compiled, refused = compile_updates(_of_ids(updates, ids), tokenizer)
        valid.append(pa.Table.from_batches([compiled.select(_WORDS.names)]))
        rejected.append(pa.Table.from_batches([refused]))
    return Pending(pa.concat_tables(valid), pa.concat_tables(rejected))


def stop_words_of(state: State) -> tuple[str, ...]:
    """Return the stop words that a job was started with; none before its first start."""
    return state.job_file.stop_words if state.job_file.exists() else ()


def _live(home: Home, state: State, events: DeploymentEvents, ids: Sequence[str] | None) -> pa.Table:
    decided = decisions(decided_log(home, state), ids)
    later = pending(events, decided.upto_seq, stop_words_of(state), ids)
    said = pa.concat_tables([_still_live(decided.rows), later.valid.select(_WORDS.names)])
    # The last word on an id decides, and the seq of an event is its own.
    last = said.group_by("id").aggregate([("seq", "max")]).column("seq_max")
    is_last = pa.array(np.isin(said.column("seq").to_numpy(), last.to_numpy()))
    return said.filter(is_last).filter(pc.field("is_subscribe")).select(LIVE.names).sort_by("seq")


def _still_live(rows: pa.Table) -> pa.Table:
    begins = rows.filter(pc.equal(rows.column("change"), BEGIN))
    ends = rows.filter(pc.equal(rows.column("change"), END))
    ended = np.isin(begins.column("seq_from").to_numpy(), ends.column("seq_from").to_numpy())
    live = begins.filter(pa.array(~ended)).rename_columns({"seq_from": "seq"})
    return live.append_column("is_subscribe", pa.repeat(True, live.num_rows)).select(_WORDS.names)


def _of_ids(batch: pa.RecordBatch, ids: Sequence[str] | None) -> pa.RecordBatch:
    if ids is None:
        return batch
    return batch.filter(pc.is_in(batch.column("id"), value_set=pa.array(ids, pa.string())))
