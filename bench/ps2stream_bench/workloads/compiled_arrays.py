"""Events as the arrays that kernels take, compiled with the product's own tokenizer.

So an index and an engine can be measured on the very same workload.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Ragged, frozen
from ps2stream.matching.contract import FOREVER, Probes, Subscriptions
from ps2stream.text.clauses import compile_expressions
from ps2stream.text.frequencies import count_terms, rarest_first
from ps2stream.text.tokenizer import Tokenizer
from ps2stream_bench.workloads.corpus import Corpus
from ps2stream_bench.workloads.streams import publish_events
from ps2stream_bench.workloads.subscriptions import Kind, subscribe_events


class Arrays(NamedTuple):
    """What the kernels take: subscriptions, and probes whose terms all belong to one worker."""

    subscriptions: Subscriptions
    probes: Probes


def compile_arrays(corpus: Corpus, subscribes: pa.Table, publishes: pa.Table) -> Arrays:
    """Compile events as dispatchers do; frequencies are those of the publications."""
    tokenizer = corpus.tokenizer()
    terms = tokenizer.tokenize(publishes["text"].combine_chunks())
    return Arrays(compile_subscriptions(subscribes, tokenizer, terms), _probes(publishes, terms))


def draw_arrays(corpus: Corpus, kind: Kind, n: int, n_publications: int, seed: int) -> Arrays:
    """Draw ``n`` subscriptions of a kind and publications that come after them, and compile both."""
    subscribes = subscribe_events(corpus, kind, n, seed)
    return compile_arrays(corpus, subscribes, publish_events(corpus, n_publications, n + 1, seed + 1))


def compile_subscriptions(subscribes: pa.Table, tokenizer: Tokenizer, sample: Ragged) -> Subscriptions:
    """Compile subscribe events; the sample of texts says which term of a clause is the rarest."""
    compiled = compile_expressions(subscribes["expression"].combine_chunks(), tokenizer)
    if compiled.errors:
        row, reason = next(iter(compiled.errors.items()))
        raise ValueError(f"expression of event {row} must compile; {reason}")
    clause_terms = compiled.terms.copy()
    rarest_first(clause_terms, compiled.term_offsets, count_terms(sample))
    corners = ("min_lon", "min_lat", "max_lon", "max_lat")
    bounds = np.stack([subscribes[name].to_numpy() for name in corners], axis=1).ravel()
    return Subscriptions(
        seq_from=frozen(subscribes["seq"].to_numpy()),
        seq_to=frozen(np.full(subscribes.num_rows, FOREVER)),
        bounds=frozen(bounds),
        clause_offsets=frozen(compiled.clause_offsets),
        term_offsets=frozen(compiled.term_offsets),
        terms=frozen(clause_terms),
    )


def _probes(publishes: pa.Table, terms: Ragged) -> Probes:
    return Probes(
        seq=frozen(publishes["seq"].to_numpy()),
        lon=frozen(publishes["lon"].to_numpy()),
        lat=frozen(publishes["lat"].to_numpy()),
        term_offsets=frozen(terms.offsets),
        terms=frozen(terms.values),
        owned=frozen(np.ones(len(terms.values), np.uint8)),
    )
