"""Without transactions nothing is lost and nothing false delivered, whatever dies or does not know it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.model.schemas import BEFORE_ALL_SEQS, EVENTS, empty
from ps2stream.partitioning import PARTITIONERS
from ps2stream.resident.routed import from_record
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, WORKER, Place, RoleName, Topic
from ps2stream.testing import oracle
from ps2stream.testing.checker import check, check_at_least_once
from ps2stream.testing.generators import random_events, random_steps
from resident.live import Clients, live_rig
from resident.made import Obedient
from resident.restless import Restless
from resident.rig import Rig
from strategies import event_logs

ME = RoleName(DISPATCHER)


def loose(rig: Rig) -> Rig:
    rig.config = replace(rig.config, is_exact=False, trim_s=0.01)
    return rig


def assert_nothing_lost(rig: Rig, events: pa.Table) -> None:
    assert set(rig.matches()) == {tuple(match) for match in oracle.run(events).matches}


@given(
    events=event_logs(max_size=60),
    n_workers=st.integers(1, 8),
    n_dispatchers=st.integers(1, 3),
    partitioner=st.sampled_from(list(PARTITIONERS)),
    death=st.sampled_from([0.0, 0.05, 0.2]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=10, deadline=None)
def test_any_log_gives_all_that_the_oracle_says_and_nothing_else(
    events: pa.Table, n_workers: int, n_dispatchers: int, partitioner: str, death: float, seed: int
) -> None:
    chosen = Settings(n_workers=n_workers, n_dispatchers=n_dispatchers, partitioner=partitioner)
    chaos = Restless(seed, one_batch(events))
    rig = loose(Rig.of(chosen, one_batch(events), controller=chaos, seed=seed))
    rig.pour(events)
    rig.run(death)
    assert_nothing_lost(rig, events)
    if not rig.n_deaths:
        assert len(rig.matches()) == len(set(rig.matches()))


def test_a_long_log_is_delivered_in_full_beside_zombies_and_comes_twice_in_part() -> None:
    n_zombies = n_repeated = 0
    for seed in range(2):
        events = random_events(500, seed=seed, publication_share=0.6)
        chaos = Restless(seed, one_batch(events))
        given_settings = Settings(n_workers=4, n_dispatchers=2)
        rig = loose(Rig.of(given_settings, one_batch(events), controller=chaos, seed=seed))
        rig.pour(events)
        rig.run(death=0.03)
        assert_nothing_lost(rig, events)
        n_zombies += rig.n_deaths
        n_repeated += len(rig.matches()) - len(set(rig.matches()))
    assert n_zombies > 5
    assert n_repeated > 0  # else nothing was written without a note, and nothing is shown here


def test_either_delivery_goes_on_after_the_other() -> None:
    events = random_events(600, seed=5, publication_share=0.6)
    rig = Rig.of(Settings(n_workers=3, n_dispatchers=2), one_batch(events), seed=5)
    rig.pour(events)
    for is_exact, n_dispatchers in ((False, 3), (True, 1), (False, 2), (True, 2)):
        rig.run(n_steps=150)
        rig.config = replace(rig.config, is_exact=is_exact)
        rig.restart(n_dispatchers)
        rig.zombies.clear()
    rig.run()
    assert_nothing_lost(rig, events)


def test_packets_of_a_dispatcher_that_was_replaced_are_passed_over() -> None:
    events = random_events(200, seed=7, publication_share=0.7)
    rig = loose(Rig.of(Settings(n_workers=2, n_dispatchers=1), one_batch(events), seed=7)).steadily()
    rig.pour(events)
    rig.run(n_steps=60)
    for role in (RoleName(DISPATCHER), RoleName(WORKER, 1)):
        rig.start(role)
    assert len(rig.zombies) == 2
    rig.run()
    assert_nothing_lost(rig, events)


def subscription(id: str) -> dict[str, Any]:
    return {"id": id, "expression": "tea", "region": [-10, -10, 10, 10]}


def publication(id: str, **demands: int) -> dict[str, Any]:
    return {"id": id, "lat": 1, "lon": 1, "text": "tea", **demands}


def small_rig(n_dispatchers: int = 1, as_of_s: float = 0.0) -> Rig:
    """Return a rig without an order, all of whose roles note at once what they have done."""
    chosen = Settings(n_workers=1, n_dispatchers=n_dispatchers)
    rig = loose(Rig.of(chosen, empty(EVENTS), n_partitions=n_dispatchers, given=False, as_of_s=as_of_s))
    rig.config = replace(rig.steadily().config, trim_s=1e9)
    rig.settle(1)
    note_at_once(rig)
    return rig


def note_at_once(rig: Rig) -> None:
    for role, loop in rig.loops.items():
        if role.kind != REGISTRAR:
            loop._wire._every_s = 0


def broken_promises(rig: Rig) -> list[str | None]:
    """Return publications at positions that their dispatcher had said before nothing would come at."""
    horizon, incarnation = BEFORE_ALL_SEQS, 0
    broken = []
    for record in rig.topics.records(Place(Topic.ROUTED)):
        packet, header = from_record(record.value or b"")
        if header.incarnation >= incarnation:
            for position, id in zip(packet["seq"].to_pylist(), packet["id"].to_pylist(), strict=True):
                broken += [id] * (position < horizon)
            horizon, incarnation = max(horizon, header.horizon), header.incarnation
    return broken


@pytest.mark.parametrize("is_exact", [False, True])
def test_a_successor_keeps_what_was_promised_and_not_noted_whatever_its_delivery(is_exact: bool) -> None:
    rig = small_rig()
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.settle()
    before = rig.loops[ME]._horizon
    rig.loops[ME]._wire._every_s = 1e9  # from now on it promises, and does not note it
    rig.arrive(Topic.UPDATES, {"op": "unsubscribe", "id": "a"})
    rig.settle()
    del rig.loops[ME]  # killed
    rig.config = replace(rig.config, is_exact=is_exact, as_of_s=60.0)
    for _ in range(2):  # the second has an exact one before it, which has noted nothing else
        rig.start(ME)
    rig.arrive(Topic.PUBLICATIONS, publication("p", as_of=before))
    rig.settle()
    assert broken_promises(rig) == []
    assert [each["id"] for each in rig.rejected()] == ["p"]


def test_one_that_was_replaced_promises_nothing_that_its_successor_does_not_know_of() -> None:
    rig = small_rig()
    rig.arrive(Topic.UPDATES, subscription("a"))
    rig.settle()
    rig.start(ME)
    (zombie,) = rig.zombies
    zombie._wire._every_s = 1e9
    rig.loops[ME]._wire._wire._at_once = {Topic.LOG: 0}  # it reads what comes next of the log later
    rig.arrive(Topic.UPDATES, {"op": "unsubscribe", "id": "a"})
    rig.step(RoleName(REGISTRAR))
    zombie.step(0.0)
    rig.arrive(Topic.PUBLICATIONS, publication("p"))
    rig.settle()
    assert broken_promises(rig) == []
    assert [(match[0], match[2]) for match in rig.matches()] == [("a", "p")]


def test_packets_of_a_dispatcher_that_is_no_more_are_passed_over_by_a_worker_that_starts_again() -> None:
    rig = small_rig(n_dispatchers=2)
    controller = rig.controller = Obedient()
    rig.config = replace(rig.config, snapshot_every=3)
    rig.arrive(Topic.UPDATES, subscription("s0"))
    rig.settle()
    zombie = rig.loops[RoleName(DISPATCHER, 1)]
    zombie._wire._every_s = 1e9
    zombie._wire._wire._next.pop(Place(Topic.LOG))  # it stands still amid a step
    rig.restart(1)
    rig.settle(1)
    note_at_once(rig)
    rig.settle()
    for word in ("switch", "unite", "", "", ""):  # until nothing is left of the plans that it goes by
        controller.order = (word, 0, 0)
        rig.settle(1)
        controller.order = ("", 0, 0)
        rig.arrive(Topic.UPDATES, *(subscription(f"s{number}") for number in range(4)))
        rig.settle(8)
    rig.arrive(Topic.PUBLICATIONS, publication("p"), partition=1)
    zombie.step(0.0)
    rig.start(RoleName(WORKER))
    rig.settle()
    assert sorted(match[0] for match in rig.matches()) == ["s0", "s1", "s2", "s3"]


@given(
    seed=st.integers(0, 100_000),
    n_workers=st.integers(1, 6),
    n_dispatchers=st.integers(1, 3),
    death=st.sampled_from([0.0, 0.05, 0.2]),
    as_of_s=st.sampled_from([0.0, 0.02, 60.0]),
)
@settings(max_examples=12, deadline=None)
def test_publications_without_an_order_reach_all_at_one_of_their_positions(
    seed: int, n_workers: int, n_dispatchers: int, death: float, as_of_s: float
) -> None:
    rig, _ = live_rig(seed, n_workers, n_dispatchers, as_of_s)
    loose(rig)
    clients = Clients(rig)
    clients.will(random_steps(80, seed))
    rig.run(death)
    history = clients.seen()
    assert check_at_least_once(history) == []
    if not rig.n_deaths:
        assert check(history) == []
