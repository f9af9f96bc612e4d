"""Events without an order: whatever happens to roles, one order explains all that was delivered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.model.schemas import PUBLISH
from ps2stream.resident.wire import REGISTRAR, RoleName
from ps2stream.testing.checker import check
from ps2stream.testing.generators import random_steps
from resident.live import Clients, live_rig


@given(
    seed=st.integers(0, 100_000),
    n_workers=st.integers(1, 6),
    n_dispatchers=st.integers(1, 3),
    death=st.sampled_from([0.0, 0.02, 0.1]),
    as_of_s=st.sampled_from([0.0, 0.02, 60.0]),
)
@settings(max_examples=12, deadline=None)
def test_one_order_explains_what_was_delivered_through_adjustments_and_deaths(
    seed: int, n_workers: int, n_dispatchers: int, death: float, as_of_s: float
) -> None:
    rig, _ = live_rig(seed, n_workers, n_dispatchers, as_of_s)
    clients = Clients(rig)
    clients.will(random_steps(80, seed))
    rig.run(death)
    assert check(clients.seen()) == []


@pytest.mark.parametrize("seed", range(1))
def test_one_order_explains_a_long_history_of_more_and_fewer_dispatchers(seed: int) -> None:
    rig, chaos = live_rig(seed, 4, 2, 0.05)
    clients = Clients(rig)
    clients.will(random_steps(700, seed))
    for n_dispatchers in (3, 1, 3):
        rig.run(0.02, n_steps=400)
        rig.restart(n_dispatchers)
    rig.run(0.02)
    history = clients.seen()
    assert check(history) == []
    assert len(history.deliveries) > 100
    assert sum(chaos.made.values()) > 5
    assert rig.n_deaths > 5


def test_what_asks_for_an_update_waits_for_it_as_long_as_it_is_undecided() -> None:
    rig, _ = live_rig(3, 2, 2, 60.0)
    rig.config = replace(rig.config, after_s=0.0)  # no patience at all
    clients = Clients(rig)
    clients.will(random_steps(150, 3, invalid_share=0.0, after_share=0.5, as_of_share=0.0))
    rig.run(n_steps=100)
    rig.stopped = {RoleName(REGISTRAR)}
    rig.run(n_steps=400)
    rig.stopped = set()
    rig.run()
    history = clients.seen()
    assert check(history) == []
    assert all(rejection.op != PUBLISH for rejection in history.rejections)
