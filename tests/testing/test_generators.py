"""Generated logs are reproducible, full of matches, and invalid only where they should be."""

import random

import pytest

from ps2stream.model.expressions import parse
from ps2stream.model.schemas import EVENTS, OPERATIONS
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events, random_expression, random_region, random_text


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
