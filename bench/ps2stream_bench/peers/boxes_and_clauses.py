"""Subscriptions as boxes and clauses.

Expressions are read by the product itself and a column at a time, for every peer: how fast somebody parses
Boolean expressions is not what peers are compared by.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Float64s, Int64s, Ragged, UInt64s
from ps2stream.text.clauses import compile_expressions
from ps2stream.text.hashing import hash_term
from ps2stream.text.terms import terms_of
from ps2stream.text.tokenizer import Tokenizer

#: A row for each clause of each box.
CLAUSES = pa.schema(
    [
        ("subscription_seq", pa.int64()),
        ("min_lon", pa.float64()),
        ("min_lat", pa.float64()),
        ("max_lon", pa.float64()),
        ("max_lat", pa.float64()),
        ("terms", pa.list_(pa.string())),
    ]
)


class Interests(NamedTuple):
    """Closed boxes, and of each box the clauses ``first_clause`` to ``end_clause`` with their term hashes.

    A subscription is one box, or two that share its clauses if its region crosses the antimeridian.
    """

    subscription_seq: Int64s
    min_lon: Float64s
    min_lat: Float64s
    max_lon: Float64s
    max_lat: Float64s
    first_clause: Int64s
    end_clause: Int64s
    terms: Ragged


def interests_of(subscriptions: pa.Table, tokenizer: Tokenizer) -> Interests:
    """Compile subscribe events."""
    compiled = compile_expressions(subscriptions["expression"].combine_chunks(), tokenizer)
    if compiled.errors:
        row, reason = next(iter(compiled.errors.items()))
        raise ValueError(f"expression of subscription {subscriptions['id'][row]} must be valid; {reason}")
    min_lon, max_lon = subscriptions["min_lon"].to_numpy(), subscriptions["max_lon"].to_numpy()
    crossing = np.flatnonzero(min_lon > max_lon)
    # The western part of a region that crosses comes in its own row, the eastern one at the end.
    rows = np.concatenate([np.arange(len(min_lon)), crossing])
    max_lon = np.concatenate([np.where(min_lon > max_lon, 180.0, max_lon), max_lon[crossing]])
    min_lon = np.concatenate([min_lon, np.full(len(crossing), -180.0)])
    return Interests(
        subscriptions["seq"].to_numpy()[rows],
        min_lon,
        subscriptions["min_lat"].to_numpy()[rows],
        max_lon,
        subscriptions["max_lat"].to_numpy()[rows],
        compiled.clause_offsets[:-1][rows],
        compiled.clause_offsets[1:][rows],
        Ragged(compiled.terms, compiled.term_offsets),
    )


def runs(first: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """Return all numbers from ``first`` to before ``end`` of each row, and the row of each number."""
    sizes = end - first
    row = np.repeat(np.arange(len(first)), sizes)
    begins = np.cumsum(sizes) - sizes
    return np.arange(len(row)) + (first - begins)[row], row


def clause_table(subscriptions: pa.Table, stop_words: Iterable[str]) -> pa.Table:
    """Lay subscribe events out for a database: a row for each clause, terms as words (schema CLAUSES)."""
    interests = interests_of(subscriptions, Tokenizer(stop_words))
    clause, box = runs(interests.first_clause, interests.end_clause)
    slot, _ = runs(interests.terms.offsets[clause], interests.terms.offsets[clause + 1])
    sizes = np.diff(interests.terms.offsets)[clause]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    words = _words_of(interests.terms.values[slot], subscriptions["expression"])
    boxes = [pa.array(column[box]) for column in interests[:5]]
    terms = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), words)
    return pa.table([*boxes, terms], schema=CLAUSES)


def _words_of(hashes: UInt64s, expressions: pa.ChunkedArray) -> pa.Array:
    """Look up which term of some expressions has each of these hashes."""
    keywords = pc.unique(pc.list_flatten(pc.split_pattern_regex(expressions, r"[\s()]+")))
    known = {hash_term(term): term for keyword in keywords.to_pylist() for term in terms_of(keyword)}
    ordered = np.array(sorted(known), np.uint64)
    words = pa.array([known[each] for each in ordered.tolist()], pa.string())
    return words.take(pa.array(np.searchsorted(ordered, hashes)))
