"""The dispatcher alone: publications/s of one core when nobody waits for them, and when somebody does."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import frozen
from ps2stream.matching.contract import Subscriptions
from ps2stream.model.schemas import PUBLICATIONS
from ps2stream.partitioning.plan import Plan
from ps2stream.roles.dispatcher import Dispatched, Dispatcher
from ps2stream.routing.index import GridT
from ps2stream.routing.layout import Postings
from ps2stream.routing.routing import Routing
from ps2stream.text.tokenizer import Tokenizer
from ps2stream_bench.workloads.scripts import ASCII, SCRIPTS, written_in

NO_SUBSCRIPTIONS, STRANGERS, ROUTED = "no subscriptions", "subscriptions to other terms", "all routed"
#: Turns every term into another one that is in no text.
_OTHER_TERMS = np.uint64(0x5555555555555555)


class Contender(NamedTuple):
    """Publications in one script, and what subscriptions there are."""

    waiting: str
    script: str
    grid_t: GridT
    publications: pa.RecordBatch


class Measured(NamedTuple):
    """What one dispatch came to."""

    publications_per_s: float
    discarded_share: float
    fan_out: float
    h2_bytes_per_subscription: float


def contenders_of(
    plan: Plan, subs: Subscriptions, publishes: pa.Table, tokenizer: Tokenizer
) -> list[Contender]:
    """Pair what subscriptions there are with what publications are written in."""
    (publications,) = publishes.select(PUBLICATIONS.names).combine_chunks().to_batches()
    terms = subs.terms[subs.term_offsets[:-1]]
    none, others, own = GridT.create(plan), GridT.create(plan), GridT.create(plan)
    others.add(Postings(subs.bounds, subs.clause_offsets, frozen(terms ^ _OTHER_TERMS)))
    own.add(Postings(subs.bounds, subs.clause_offsets, frozen(terms)))
    routed = _routed(Dispatcher(Routing(own), tokenizer).dispatch(publications), publications)
    return [
        Contender(NO_SUBSCRIPTIONS, ASCII, none, publications),
        *(Contender(STRANGERS, script, others, _in_script(script, publications)) for script in SCRIPTS),
        Contender(ROUTED, ASCII, own, routed),
    ]


def take_turns(
    contenders: list[Contender], tokenizer: Tokenizer, n_subscriptions: int, repetitions: int, seed: int
) -> Iterator[tuple[int, Contender, Measured]]:
    """Let every contender dispatch its publications once a repetition, each time in another order."""
    for contender in contenders:
        _measure(contender, tokenizer, n_subscriptions)  # memory that is new is slower
    rng = np.random.default_rng([seed, 17])
    for repetition in range(repetitions):
        for at in rng.permutation(len(contenders)).tolist():
            yield repetition, contenders[at], _measure(contenders[at], tokenizer, n_subscriptions)


def _measure(contender: Contender, tokenizer: Tokenizer, n_subscriptions: int) -> Measured:
    gc.collect()
    dispatcher = Dispatcher(Routing(contender.grid_t), tokenizer)
    started = time.process_time()
    done = dispatcher.dispatch(contender.publications)
    seconds = time.process_time() - started
    n_sent = sum(packet.num_rows for packet in done.packets.values())
    return Measured(
        done.n_publications / max(seconds, 1e-9),
        done.n_discarded / max(done.n_publications, 1),
        n_sent / max(done.n_publications - done.n_discarded, 1),
        contender.grid_t.n_bytes / n_subscriptions,
    )


def _routed(done: Dispatched, publications: pa.RecordBatch) -> pa.RecordBatch:
    """Keep the publications that go to any worker."""
    sent = [packet.column("seq").to_numpy() for packet in done.packets.values()]
    wanted = np.concatenate([np.empty(0, np.int64), *sent])
    return publications.filter(pa.array(np.isin(publications.column("seq").to_numpy(), wanted)))


def _in_script(script: str, publications: pa.RecordBatch) -> pa.RecordBatch:
    at = publications.schema.get_field_index("text")
    texts = written_in(script, publications.column("text"))
    return publications.set_column(at, publications.schema.field(at), texts)
