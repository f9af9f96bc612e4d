"""Generated logs are reproducible, full of matches, and invalid only where they should be."""

import random

import pytest

from ps2stream.model.expressions import parse
from ps2stream.model.schemas import EVENTS, OPERATIONS
from ps2stream.testing import oracle
from ps2stream.testing.generators import (
    random_events,
    random_expression,
    random_region,
    random_steps,
    random_text,
)


def test_the_same_arguments_give_the_same_log() -> None:
    assert random_events(200, 3).equals(random_events(200, 3))
    assert not random_events(200, 3).equals(random_events(200, 4))


@pytest.mark.parametrize("seed", range(3))
def test_a_log_of_two_thousand_events_has_thousands_of_matches(seed: int) -> None:
    events = random_events(2000, seed)
    assert events.schema == EVENTS
    assert events.num_rows == 2000
    assert 2000 < len(oracle.run(events).matches) < 50_000


def test_a_log_mixes_all_operations_and_subscribes_again() -> None:
    events = random_events(500, 1, invalid_share=0.0)
    assert set(events["op"].to_pylist()) == set(OPERATIONS)
    subscribed = [row["id"] for row in events.to_pylist() if row["op"] == "subscribe"]
    assert len(set(subscribed)) < len(subscribed)
    versions = {(match.subscription_id, match.subscription_seq) for match in oracle.run(events).matches}
    assert len({name for name, _ in versions}) < len(versions)


@pytest.mark.parametrize("seed", range(5))
def test_only_the_invalid_events_are_rejected(seed: int) -> None:
    assert oracle.run(random_events(300, seed, invalid_share=0.0)).rejected == []
    everything_broken = random_events(300, seed, invalid_share=1.0)
    assert len(oracle.run(everything_broken).rejected) == 300
    some = len(oracle.run(random_events(1000, seed, invalid_share=0.2)).rejected)
    assert 120 < some < 280


def test_an_empty_log_is_a_log() -> None:
    assert random_events(0, 1).schema == EVENTS


def test_steps_have_no_seqs_and_demand_positions_of_earlier_updates() -> None:
    steps = random_steps(1000, 3, invalid_share=0.1, after_share=0.3, as_of_share=0.2)
    assert steps == random_steps(1000, 3, invalid_share=0.1, after_share=0.3, as_of_share=0.2)
    assert {step.event.seq for step in steps} == {None}
    n_updates = n_after = n_as_of = 0
    for step in steps:
        demanded = [number for number in (step.after, step.as_of) if number is not None]
        assert all(0 <= number < n_updates for number in demanded)
        assert len(demanded) <= (not step.is_update)
        n_updates += step.is_update
        n_after += step.after is not None
        n_as_of += step.as_of is not None
    assert 300 < n_updates < 500
    assert 120 < n_after < 240
    assert 80 < n_as_of < 160


def test_steps_may_be_spoilt_in_every_way_but_their_seq() -> None:
    log = [
        step.event._replace(seq=seq) for seq, step in enumerate(random_steps(300, 2, invalid_share=1.0), 1)
    ]
    assert len(oracle.run(log).rejected) == 300
    log = [step.event._replace(seq=seq) for seq, step in enumerate(random_steps(300, 2, invalid_share=0.0))]
    assert oracle.run(log).rejected == []


def test_expressions_parse_and_nest() -> None:
    rng = random.Random(5)
    expressions = [random_expression(rng) for _ in range(500)]
    assert max(len(parse(text).clauses()) for text in expressions) > 3
    assert any("(" in text for text in expressions)


def test_regions_and_texts_cover_the_edges() -> None:
    rng = random.Random(5)
    regions = [random_region(rng) for _ in range(500)]
    assert any(west > east for west, _, east, _ in regions)
    assert any(west == east and south == north for west, south, east, north in regions)
    assert any(south == north == 90.0 for _, south, _, north in regions)
    texts = [random_text(rng) for _ in range(500)]
    assert "" in texts
    assert any("😀" in text for text in texts)
    assert any("\u0308" in text for text in texts)
