"""The oracle defines a match; these are the cases that a reader would ask about."""

import math
import random
import subprocess
import sys
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from ps2stream.model.matches import Match
from ps2stream.model.schemas import AFTER_ALL_SEQS, EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing import generators, oracle
from ps2stream.testing.oracle import EventRow, Rejection


def subscribe(
    seq: int | None, name: str | None = "s", expression: str | None = "fire", **fields: Any
) -> EventRow:
    everywhere = {"min_lon": -180.0, "min_lat": -90.0, "max_lon": 180.0, "max_lat": 90.0}
    return EventRow(seq, SUBSCRIBE, name, expression=expression, **{**everywhere, **fields})


def publish(seq: int | None, name: str | None = "p", text: str | None = "fire", **fields: Any) -> EventRow:
    return EventRow(seq, PUBLISH, name, text=text, **{"lat": 0.0, "lon": 0.0, **fields})


def unsubscribe(seq: int | None, name: str | None = "s") -> EventRow:
    return EventRow(seq, UNSUBSCRIBE, name)


def rejection(event: EventRow) -> Rejection:
    return Rejection(event.seq, event.op, event.id)


def test_a_publication_meets_what_was_subscribed_before_it() -> None:
    log = [publish(1, "early"), subscribe(2), publish(3, "in time"), unsubscribe(4), publish(5, "late")]
    assert oracle.run(log) == ([Match("s", 2, "in time", 3)], [])


def test_subscribing_again_replaces_from_there_on() -> None:
    log = [subscribe(1), publish(2), subscribe(3, expression="rain"), publish(4), publish(5, text="rain")]
    assert oracle.run(log).matches == [Match("s", 1, "p", 2), Match("s", 3, "p", 5)]


def test_matches_are_ordered_by_publication_then_subscription() -> None:
    log = [subscribe(1, "z"), subscribe(2, "a"), subscribe(3, "z"), publish(4), publish(5)]
    assert [(match.publication_seq, match.subscription_seq) for match in oracle.run(log).matches] == [
        (4, 2),
        (4, 3),
        (5, 2),
        (5, 3),
    ]


@pytest.mark.parametrize(
    ("lon", "lat", "region", "inside"),
    [
        (10.0, 5.0, (10.0, 5.0, 10.0, 5.0), True),
        (10.0, 5.0, (0.0, 0.0, 10.0, 5.0), True),
        (math.nextafter(10.0, 11.0), 5.0, (0.0, 0.0, 10.0, 5.0), False),
        (179.0, 0.0, (170.0, -1.0, -170.0, 1.0), True),
        (-170.0, 0.0, (170.0, -1.0, -170.0, 1.0), True),
        (0.0, 0.0, (170.0, -1.0, -170.0, 1.0), False),
        (-180.0, 0.0, (170.0, -1.0, 180.0, 1.0), False),
        (33.0, 90.0, (-180.0, 90.0, 180.0, 90.0), True),
        (-0.0, -0.0, (0.0, 0.0, 0.0, 0.0), True),
    ],
)
def test_regions_are_closed_and_may_cross_the_antimeridian(
    lon: float, lat: float, region: tuple[float, float, float, float], inside: bool
) -> None:
    bounds: dict[str, Any] = dict(zip(("min_lon", "min_lat", "max_lon", "max_lat"), region, strict=True))
    outcome = oracle.run([subscribe(1)._replace(**bounds), publish(2, lon=lon, lat=lat)])
    assert bool(outcome.matches) is inside
    assert outcome.rejected == []


@pytest.mark.parametrize(
    "event",
    [
        publish(None),
        publish(0),
        EventRow(10, None, "p"),
        EventRow(10, "PUBLISH", "p"),
        publish(10, None),
        publish(10, ""),
        publish(10, text=None),
        publish(10, lat=None),
        publish(10, lat=math.nan),
        publish(10, lon=math.inf),
        publish(10, lat=90.5),
        publish(10, lon=-180.5),
        subscribe(10, expression=None),
        subscribe(10, expression="fire AND"),
        subscribe(10, expression="The"),
        subscribe(10, min_lon=None),
        subscribe(10, max_lat=math.nan),
        subscribe(10, min_lon=-math.inf),
        subscribe(10, max_lon=181.0),
        subscribe(10, min_lat=2.0, max_lat=1.0),
        unsubscribe(10, "unknown"),
    ],
)
def test_an_event_that_makes_no_sense_is_rejected_alone(event: EventRow) -> None:
    log = [subscribe(0), subscribe(1), event, publish(20)]
    assert oracle.run(log, stop_words=["the"]) == ([Match("s", 1, "p", 20)], [rejection(event)])


@pytest.mark.parametrize(
    ("fitting", "too_long"),
    [
        (publish(10, "\u00fc" * 512), publish(11, "\u00fc" * 512 + "x")),
        (publish(10, text="fire " + "x" * 65_531), publish(11, text="fire " + "x" * 65_532)),
        (subscribe(10, "t", "fire " + "x" * 16_379), subscribe(11, "t", "fire " + "x" * 16_380)),
        (subscribe(10, "t" * 1_024), subscribe(11, "t" * 1_025)),
        (subscribe(10, "t"), unsubscribe(11, "t" * 1_025)),
    ],
)
def test_what_is_too_long_is_rejected_and_shown_by_its_beginning(
    fitting: EventRow, too_long: EventRow
) -> None:
    outcome = oracle.run([fitting, too_long])
    assert too_long.id is not None
    shown = too_long.id if len(too_long.id) < 100 else too_long.id[:60] + "\u2026"
    assert outcome.rejected == [Rejection(11, too_long.op, shown)]


def test_a_rejected_event_keeps_its_place_in_the_order() -> None:
    log = [subscribe(1), publish(5, lat=math.nan), publish(4), publish(5), publish(6)]
    outcome = oracle.run(log)
    assert outcome.matches == [Match("s", 1, "p", 6)]
    assert outcome.rejected == [rejection(event) for event in log[1:4]]


def test_unsubscribing_twice_rejects_the_second() -> None:
    log = [subscribe(1), unsubscribe(2), unsubscribe(3)]
    assert oracle.run(log).rejected == [rejection(log[2])]


def test_an_empty_text_is_a_publication_without_terms() -> None:
    assert oracle.run([subscribe(1), publish(2, text="")]) == ([], [])


def test_stop_words_are_not_seen_in_texts_or_expressions() -> None:
    log = [
        subscribe(1, "a", "the fire"),
        subscribe(2, "b", "the OR rain"),
        publish(3, text="fire"),
        publish(4, text="the"),
    ]
    assert oracle.run(log, ["The"]).matches == [Match("a", 1, "p", 3)]
    assert oracle.run(log).matches == [Match("b", 2, "p", 4)]


def test_a_publication_at_a_position_sees_the_updates_below_it() -> None:
    updates = [subscribe(2), subscribe(4, expression="fire OR rain"), unsubscribe(6)]
    placed = [publish(7, "p7"), publish(5, "p5"), publish(3, "p3"), publish(1, "p1"), publish(5, "also p5")]
    assert oracle.run_at(updates, placed).matches == [
        Match("s", 2, "p3", 3),
        Match("s", 4, "also p5", 5),
        Match("s", 4, "p5", 5),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_publications_at_their_own_seqs_have_the_matches_of_the_log(seed: int) -> None:
    steps = generators.random_steps(400, seed, invalid_share=0.2)
    log = [(step, step.event._replace(seq=seq)) for seq, step in enumerate(steps)]
    updates = [event for step, event in log if step.is_update]
    placed = [event for step, event in log if not step.is_update]
    random.Random(seed).shuffle(placed)
    got, expected = oracle.run_at(updates, placed, ["the"]), oracle.run([event for _, event in log], ["the"])
    assert got.matches == expected.matches
    assert Counter(got.rejected) == Counter(expected.rejected)


def test_a_publication_without_a_position_is_rejected_behind_the_updates() -> None:
    updates = [subscribe(2), unsubscribe(4, "unknown")]
    placed = [publish(None), publish(3, lat=None), publish(3, ""), subscribe(5)]
    assert oracle.run_at(updates, placed) == ([], [rejection(event) for event in (updates[1], *placed)])


def test_versions_tell_when_they_end() -> None:
    log = [subscribe(2), subscribe(4), subscribe(6, expression="AND"), subscribe(8, "t"), unsubscribe(10)]
    lives, rejected = oracle.versions(log)
    assert [(one.id, one.seq, one.end) for one in lives] == [
        ("s", 2, 4),
        ("s", 4, 10),
        ("t", 8, AFTER_ALL_SEQS),
    ]
    assert rejected == [rejection(log[2])]
    assert [position for position in range(12) if lives[1].is_live_at(position)] == [5, 6, 7, 8, 9]


def test_tables_and_batches_are_logs_too() -> None:
    log = [subscribe(1), publish(2), publish(3, lat=None)]
    table = pa.Table.from_pylist([event._asdict() for event in log], EVENTS)
    assert oracle.run(table) == oracle.run(log) == oracle.run(table.to_batches()[0])
    assert len(oracle.run(table).matches) == 1


def test_the_oracle_needs_no_numba() -> None:
    program = "import sys, ps2stream.testing.oracle; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
