"""Where a record ends is found in its header, however many clauses and terms it has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ps2stream.matching.contract import FOREVER, Subscriptions
from ps2stream.matching.records import needed_for, next_record, set_gone, views_of, write_record
from sizes import examples

pytestmark = pytest.mark.kernel


@given(st.lists(st.integers(1, 300), min_size=1, max_size=12), st.integers(0, 5))
@example([255] * 7, 0)
@example([256], 0)
@example([1] * 8, 3)
@settings(max_examples=examples(100), deadline=None)
def test_the_next_record_begins_where_one_was_written_up_to(sizes: list[int], start: int) -> None:
    terms = np.arange(1, sum(sizes) + 1, dtype=np.uint64)
    subs = Subscriptions(
        np.array([7]),
        np.array([FOREVER]),
        np.zeros(4),
        np.array([0, len(sizes)]),
        np.cumsum([0, *sizes], dtype=np.int64),
        terms,
    )
    n_words, n_ends = needed_for(subs, np.array([0]))
    assert n_ends == 0
    records = views_of(np.zeros(start + n_words, np.int64), np.empty(0, np.int64))
    behind = write_record(records, start, subs, 0)
    assert behind <= start + n_words
    assert next_record(records.words, start) == behind
    set_gone(records, start)
    assert next_record(records.words, start) == behind
