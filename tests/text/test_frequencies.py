"""Terms are counted by rows and ordered from the rarest on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.arrays import Ragged
from ps2stream.text.frequencies import count_terms, frequency, no_frequencies, rarest_first

pytestmark = pytest.mark.kernel

terms = st.integers(0, 12).map(lambda n: n * 0x9E3779B97F4A7C15 % (1 << 64))
texts = st.lists(st.sets(terms), max_size=10)


def _ragged(rows: list[list[int]]) -> Ragged:
    values = np.array([value for row in rows for value in row], np.uint64)
    return Ragged(values, np.cumsum([0, *map(len, rows)], dtype=np.int64))


@given(texts, terms)
@settings(max_examples=60, deadline=None)
def test_a_frequency_is_the_number_of_texts_with_a_term(rows: list[set[int]], term: int) -> None:
    table = count_terms(_ragged([sorted(row) for row in rows]))
    assert frequency(table, np.uint64(term)) == sum(term in row for row in rows)
    assert np.all(table.terms[1:] > table.terms[:-1])


def test_without_a_sample_every_term_is_the_rarest() -> None:
    assert frequency(no_frequencies(), np.uint64(7)) == 0


@given(texts, st.lists(st.lists(terms, min_size=1, max_size=6, unique=True), max_size=5))
@settings(max_examples=60, deadline=None)
def test_clauses_begin_with_their_rarest_term_and_ties_go_by_the_hash(
    rows: list[set[int]], clauses: list[list[int]]
) -> None:
    table = count_terms(_ragged([sorted(row) for row in rows]))
    ragged = _ragged(clauses)
    rarest_first(ragged.values, ragged.offsets, table)
    counts = {term: sum(term in row for row in rows) for clause in clauses for term in clause}
    for i, clause in enumerate(clauses):
        assert ragged.row(i).tolist() == sorted(clause, key=lambda term: (counts[term], term))
