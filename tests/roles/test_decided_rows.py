"""A segment that is laid out at once is what its rows, made kind by kind and joined, are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.streams import plan_for, random_stream, updates_of
from ps2stream.arrays import frozen
from ps2stream.arrow import ragged_of
from ps2stream.matching.contract import FOREVER, Subscriptions
from ps2stream.registry.segments import BEGIN, END, begin_rows, bounds_of, changes, end_rows
from ps2stream.roles.migration import first_terms, workers_column
from ps2stream.roles.registrar import Registrar
from ps2stream.routing.layout import Postings
from ps2stream.text.frequencies import rarest_first
from sizes import examples

pytestmark = pytest.mark.kernel


def _begun(registrar: Registrar, compiled: pa.RecordBatch) -> pa.RecordBatch:
    """Make the rows that begin subscriptions column by column."""
    begun = compiled.filter(compiled.column("is_subscribe"))
    clauses = ragged_of(begun.column("clauses"), flat=False)
    terms = ragged_of(clauses.values)
    ordered = terms.values.copy()
    rarest_first(ordered, frozen(terms.offsets), registrar.plan.frequencies)
    forever = np.full(begun.num_rows, FOREVER)
    seqs = begun.column("seq").to_numpy()
    subs = Subscriptions(seqs, forever, bounds_of(begun), clauses.offsets, terms.offsets, ordered)
    postings = Postings(frozen(subs.bounds), frozen(subs.clause_offsets), first_terms(subs))
    workers = workers_column(registrar.grid_ts.newest.marks_of(postings))
    return begin_rows(subs, begun.column("id"), begun.column("expression"), workers)


def _ended(registrar: Registrar, segment: pa.RecordBatch) -> pa.RecordBatch:
    """Make the rows that end subscriptions from what the registry knows of them."""
    ends = changes(segment, END)
    seq_from, seq_to = (ends.column(name).to_numpy() for name in ("seq_from", "seq_to"))
    versions = registrar.registry.versions_of(seq_from)
    assert registrar.registry.seq_to(versions).tolist() == seq_to.tolist()
    postings = registrar.registry.postings(versions)
    return end_rows(
        seq_from,
        seq_to,
        registrar.registry.ids(seq_from),
        postings,
        workers_column(registrar._marks(versions)),
    )


@given(st.integers(0, 1_000), st.integers(1, 60), st.integers(0, 3))
@settings(max_examples=examples(40), deadline=None)
def test_rows_are_those_that_are_made_kind_by_kind(seed: int, size: int, start: int) -> None:
    stream = random_stream(120, seed)
    registrar = Registrar(plan_for(stream))
    compiled = updates_of(stream).slice(start)
    for at in range(0, compiled.num_rows, size):
        batch = compiled.slice(at, size)
        segment = registrar.decide(batch).segment
        segment.validate(full=True)
        begun = _begun(registrar, batch)
        assert changes(segment, BEGIN).to_pylist() == begun.to_pylist()
        assert segment.slice(begun.num_rows).to_pylist() == _ended(registrar, segment).to_pylist()


def test_a_batch_may_only_begin_or_only_end() -> None:
    stream = random_stream(200, 1)
    registrar = Registrar(plan_for(stream))
    compiled = updates_of(stream)
    for at in range(compiled.num_rows):
        segment = registrar.decide(compiled.slice(at, 1)).segment
        segment.validate(full=True)
        assert segment.num_rows <= 2
