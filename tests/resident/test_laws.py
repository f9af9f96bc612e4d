"""The laws on resident roles: what is delivered is what the oracle says, whatever happens to them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.partitioning import PARTITIONERS
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events
from resident.rig import Restless, Rig
from strategies import event_logs


def assert_as_the_oracle_says(rig: Rig, events: pa.Table) -> None:
    expected = sorted(tuple(match) for match in oracle.run(events).matches)
    assert sorted(rig.matches()) == expected


@given(
    events=event_logs(max_size=60),
    n_workers=st.integers(1, 8),
    n_dispatchers=st.integers(1, 3),
    partitioner=st.sampled_from(list(PARTITIONERS)),
    death=st.sampled_from([0.0, 0.05]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=30, deadline=None)
def test_any_log_gives_what_the_oracle_says_through_adjustments_and_deaths(
    events: pa.Table, n_workers: int, n_dispatchers: int, partitioner: str, death: float, seed: int
) -> None:
    chosen = Settings(n_workers=n_workers, n_dispatchers=n_dispatchers, partitioner=partitioner)
    chaos = Restless(seed, one_batch(events))
    rig = Rig.of(chosen, one_batch(events), controller=chaos, seed=seed)
    rig.pour(events)
    rig.run(death)
    assert_as_the_oracle_says(rig, events)


@pytest.mark.parametrize("seed", range(3))
def test_a_long_log_gives_what_the_oracle_says_through_all_kinds_of_adjustments(seed: int) -> None:
    events = random_events(1_500, seed=seed, publication_share=0.6)
    chaos = Restless(seed, one_batch(events))
    rig = Rig.of(Settings(n_workers=4, n_dispatchers=2), one_batch(events), controller=chaos, seed=seed)
    rig.pour(events)
    rig.run(death=0.01)
    assert_as_the_oracle_says(rig, events)
    assert {"local", "switch", "unite", "move"} <= set(chaos.made)
    assert rig.n_deaths > 5
