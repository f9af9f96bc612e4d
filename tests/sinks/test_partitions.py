"""Matches of a subscription go to one partition, and those of many to all."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.sinks.partitions import partitions_of


@pytest.mark.kernel
@given(st.lists(st.text(max_size=20), max_size=20), st.integers(1, 9), st.integers(0, 3))
@settings(deadline=None)  # the first time kernels are compiled
def test_an_id_has_the_same_partition_wherever_it_stands(ids: list[str], n: int, start: int) -> None:
    whole = partitions_of(pa.array(ids, pa.string()), n)
    assert ((whole >= 0) & (whole < n)).all()
    assert partitions_of(pa.array(ids, pa.string()).slice(start), n).tolist() == whole[start:].tolist()
    assert partitions_of(pa.array(ids, pa.large_string()), n).tolist() == whole.tolist()
    alone = [int(partitions_of(pa.array([id]), n)[0]) for id in ids]
    assert alone == whole.tolist()


@pytest.mark.kernel
def test_many_ids_are_spread_evenly() -> None:
    counts = np.bincount(partitions_of(pa.array([f"s{n}" for n in range(4_000)]), 4), minlength=4)
    assert counts.min() > 850
