"""The laws on resident roles: what is delivered is what the oracle says, whatever happens to them."""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.model.matches import Match
from ps2stream.partitioning import PARTITIONERS
from ps2stream.resident.notes import WorkerNote, note_from_bytes
from ps2stream.resident.wire import WORKER, Place, RoleName, Topic
from ps2stream.roles.packets import decode
from ps2stream.testing import oracle
from ps2stream.testing.checker import check_order
from ps2stream.testing.generators import random_events
from ps2stream.testing.history import Delivery, Violation
from resident.restless import Restless
from resident.rig import THE_END, Rig
from strategies import event_logs


def assert_as_the_oracle_says(rig: Rig, events: pa.Table) -> None:
    expected = sorted(tuple(match) for match in oracle.run(events).matches)
    assert sorted(rig.matches()) == expected


def disorder_of(rig: Rig) -> list[Violation]:
    """Return where a worker has delivered to a subscription what was published before, behind the later."""
    publications, matches = Topic.PUBLICATIONS, Topic.MATCHES
    partitions: dict[str | None, int] = {}
    for number in range(rig.topics.n_partitions[publications]):
        for record in rig.topics.records(Place(publications, number)):
            partitions |= dict.fromkeys(decode(record.value or b"").column("id").to_pylist(), number)
    deliveries = [
        Delivery(Match(**row), rig.writers[number, record.offset])
        for number in range(rig.topics.n_partitions[matches])
        for record in rig.topics.records(Place(matches, number))
        for row in decode(record.value or b"").to_pylist()
    ]
    return list(check_order(deliveries, partitions))


@given(
    events=event_logs(max_size=60),
    n_workers=st.integers(1, 8),
    n_dispatchers=st.integers(1, 3),
    partitioner=st.sampled_from(list(PARTITIONERS)),
    death=st.sampled_from([0.0, 0.05]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=20, deadline=None)
def test_any_log_gives_what_the_oracle_says_through_adjustments_and_deaths(
    events: pa.Table, n_workers: int, n_dispatchers: int, partitioner: str, death: float, seed: int
) -> None:
    chosen = Settings(n_workers=n_workers, n_dispatchers=n_dispatchers, partitioner=partitioner)
    chaos = Restless(seed, one_batch(events))
    rig = Rig.of(chosen, one_batch(events), controller=chaos, seed=seed)
    rig.pour(events)
    rig.run(death)
    assert_as_the_oracle_says(rig, events)


def test_a_long_log_gives_what_the_oracle_says_through_all_kinds_of_adjustments() -> None:
    made: set[str] = set()
    n_deaths = 0
    for seed in range(2):
        events = random_events(1_000, seed=seed, publication_share=0.6)
        chaos = Restless(seed, one_batch(events))
        rig = Rig.of(Settings(n_workers=4, n_dispatchers=2), one_batch(events), controller=chaos, seed=seed)
        rig.pour(events)
        rig.run(death=0.02)
        assert_as_the_oracle_says(rig, events)
        made |= set(chaos.made)
        n_deaths += rig.n_deaths
    assert {"local", "switch", "unite", "move"} <= made
    assert n_deaths > 5


def test_another_number_of_dispatchers_goes_on_where_others_were() -> None:
    events = random_events(600, seed=5, publication_share=0.6)
    rig = Rig.of(Settings(n_workers=3, n_dispatchers=2), one_batch(events), seed=5)
    rig.pour(events)
    for n_dispatchers in (3, 1, 2):
        rig.run(n_steps=150)
        rig.restart(n_dispatchers)
    rig.run()
    assert_as_the_oracle_says(rig, events)


def test_a_worker_that_stands_still_holds_up_nobody_else_and_misses_nothing() -> None:
    events = random_events(300, seed=6, publication_share=0.6)
    chaos = Restless(6, one_batch(events))
    rig = Rig.of(Settings(n_workers=3, n_dispatchers=2), one_batch(events), controller=chaos, seed=6)
    rig.pour(events)
    rig.run(n_steps=100)
    rig.stopped = {RoleName(WORKER, 1)}
    rig.run(n_steps=2_500)
    notes = {
        number: note_from_bytes(WorkerNote, note).horizons.values()
        for number, note in rig.topics.notes(WORKER).items()
    }
    assert min(*notes[0], *notes[2]) > THE_END
    assert min(notes[1]) < THE_END
    rig.stopped = set()
    rig.run()
    assert_as_the_oracle_says(rig, events)


def test_a_worker_delivers_to_a_subscription_in_order_though_roles_stand_still() -> None:
    seed = 2
    events = random_events(800, seed=seed, invalid_share=0.0, publication_share=0.6)
    chaos = Restless(seed, one_batch(events))
    rig = Rig.of(Settings(n_workers=3, n_dispatchers=2), one_batch(events), controller=chaos, seed=seed)
    rig.pour(events)
    dice = random.Random(seed)
    for _ in range(6):
        rig.stopped = set(dice.sample(rig.roles, dice.choice((0, 1, 2))))
        rig.run(0.01, n_steps=400)
    rig.stopped = set()
    rig.run(0.01)
    assert_as_the_oracle_says(rig, events)
    assert disorder_of(rig) == []
    assert chaos.made["switch"]
