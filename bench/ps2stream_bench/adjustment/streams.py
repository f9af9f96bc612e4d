"""Streams for the benchmarks of load adjustment, and engines that take turns on them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from ps2stream.balance.settings import AdjustmentSettings
from ps2stream.config import Settings
from ps2stream.pipeline.inline import InlineEngine
from ps2stream.pipeline.planning import first_plan
from ps2stream.pipeline.warm import warm
from ps2stream_bench.workload import N_STOP_WORDS, Corpus, read_corpus, synthetic_corpus

_LOAD_AT_ONCE = 100_000


def add_stream_options(parser: ArgumentParser, *, subscriptions: int) -> None:
    """Add what all commands have."""
    add = parser.add_argument
    add("--subscriptions", type=int, default=subscriptions, metavar="N", help="live subscriptions")
    add("--workers", type=int, default=8, metavar="M", help="workers, as in the paper")
    add("--dispatchers", type=int, default=4, metavar="D", help="dispatchers, as in the paper")
    add("--batch-events", type=int, default=50_000, metavar="N", help="events of a batch")
    add("--corpus", type=Path, metavar="PARQUET", help="lat, lon and text; without it a synthetic one")
    add("--corpus-size", type=int, default=200_000, metavar="N", help="texts of the synthetic corpus")
    add("--seed", type=int, default=1, metavar="N", help="another one makes other events")
    add("--out", type=Path, metavar="FILE", help="write the raw rows to this .parquet or .jsonl")


def corpus_of(arguments: Namespace) -> Corpus:
    if arguments.corpus:
        return read_corpus(arguments.corpus)
    return synthetic_corpus(arguments.corpus_size, arguments.seed)


def settings_of(arguments: Namespace, corpus: Corpus, adjustment: AdjustmentSettings) -> Settings:
    return Settings(
        n_workers=arguments.workers,
        n_dispatchers=arguments.dispatchers,
        batch_events=arguments.batch_events,
        stop_words=tuple(corpus.words[:N_STOP_WORDS].to_pylist()),
        adjustment=adjustment,
    )


def engines_of(
    events: pa.RecordBatch, n_planned: int, contenders: Mapping[str, Settings], n_live: int
) -> dict[str, InlineEngine]:
    """Start engines on one plan, made from the first events, and load the first ``n_live`` subscriptions."""
    warm()
    one = next(iter(contenders.values()))
    plan = first_plan(events.slice(0, n_planned), replace(one, sample_prefix_events=max(n_planned, 1)))
    engines = {name: InlineEngine(plan, settings) for name, settings in contenders.items()}
    for engine in engines.values():
        for batch in batches_of(events.slice(0, n_live), _LOAD_AT_ONCE):
            engine.process(batch)
    return engines


def batches_of(events: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, events.num_rows, size):
        yield events.slice(start, size)


def one_batch(events: pa.Table) -> pa.RecordBatch:
    (batch,) = events.combine_chunks().to_batches()
    return batch


def in_turn(
    engines: Mapping[str, InlineEngine], batches: Iterator[pa.RecordBatch], after: Callable[[int], None]
) -> None:
    """Let engines process batch after batch, each time in another order; call ``after`` with its number."""
    names = list(engines)
    for number, batch in enumerate(batches):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            engines[name].process(batch)
        after(number)
