from __future__ import annotations

import pytest

import ps2stream as ps2
from ps2stream.errors import ExpressionError, PS2StreamError, RegionError
from ps2stream.testing import oracle
from ps2stream.testing.generators import random_events

LONDON = ps2.Region(-0.5, 51.3, 0.3, 51.7)


def test_a_match_names_both_sides() -> None:
    matches = ps2.match(
        [
            ps2.Subscription("alarm", "fire AND (smoke OR alarm)", LONDON),
            ps2.Publication("m1", "Smoke and #Fire near the station", lat=51.5, lon=-0.1),
            ps2.Publication("m2", "Smoke and #Fire far away", lat=40.0, lon=-74.0),
        ]
    )
    assert matches == [ps2.Match("alarm", 1, "m1", 2)]


def test_subscriptions_come_and_go_between_calls() -> None:
    matcher = ps2.Matcher()
    publication = ps2.Publication("p", "fire", lat=51.5, lon=0.0)
    assert matcher.publish(publication) == []
    matcher.subscribe(ps2.Subscription("a", "fire", LONDON))
    assert [match.subscription_id for match in matcher.publish(publication)] == ["a"]
    assert matcher.unsubscribe("a")
    assert not matcher.unsubscribe("a")
    assert matcher.publish(publication) == []


def test_a_table_of_events_gives_what_the_oracle_gives() -> None:
    events = random_events(600, seed=11)
    assert ps2.match(events) == oracle.run(events).matches


def test_a_table_without_rows_gives_nothing() -> None:
    assert ps2.match(ps2.event_table([])) == []


def test_a_subscription_matches_by_itself_as_in_the_engine() -> None:
    subscription = ps2.Subscription("a", "fire OR flood", LONDON)
    assert subscription.matches(ps2.Publication("p", "FLOOD!", lat=51.4, lon=0.1))
    assert not subscription.matches(ps2.Publication("p", "flood", lat=51.8, lon=0.1))


def test_values_are_checked_when_they_are_made() -> None:
    with pytest.raises(RegionError, match=r"min_lat <= max_lat; got 3\.0 > 2\.0"):
        ps2.Region(0.0, 3.0, 1.0, 2.0)
    with pytest.raises(RegionError, match=r"publication 'p': lat must lie in \[-90, 90\]; got 91"):
        ps2.Publication("p", "x", lat=91.0, lon=0.0)
    with pytest.raises(ExpressionError):
        ps2.Subscription("a", "fire AND", LONDON)
    with pytest.raises(PS2StreamError, match="non-empty"):
        ps2.Subscription("", "fire", LONDON)
    with pytest.raises(PS2StreamError, match="non-empty"):
        ps2.Publication("", "fire", lat=0.0, lon=0.0)
    with pytest.raises(PS2StreamError, match=r"^publication 'i{60}'\u2026: id must have at most 1,024 bytes"):
        ps2.Publication("i" * 2_000, "fire", lat=0.0, lon=0.0)
    with pytest.raises(PS2StreamError, match="'p': text must have at most 65,536 bytes; got 65,538"):
        ps2.Publication("p", "\u00fc" * 32_769, lat=0.0, lon=0.0)
    with pytest.raises(PS2StreamError, match=r"^subscription 'i{60}'\u2026: id must have at most 1,024 b"):
        ps2.Subscription("i" * 1_025, "fire", LONDON)
    with pytest.raises(ExpressionError, match="expression must have at most 16,384 bytes; got 16,385"):
        ps2.Subscription("s", "x" * 16_385, LONDON)


def test_the_package_has_no_attribute_it_does_not_list() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        ps2.nonsense  # noqa: B018
    assert all(hasattr(ps2, name) for name in ps2.__all__)


def test_events_after_a_table_come_after_all_its_seqs() -> None:
    matcher = ps2.Matcher()
    table = ps2.event_table([ps2.Publication("p", "x", lat=0.0, lon=0.0)] * 2)
    matcher.process(table.set_column(0, "seq", [[10, 3]]))
    matcher.subscribe(ps2.Subscription("a", "fire", LONDON))
    assert len(matcher.publish(ps2.Publication("q", "fire", lat=51.5, lon=0.0))) == 1


def test_a_subscription_that_is_not_accepted_says_why() -> None:
    matcher = ps2.Matcher(ps2.Settings(n_workers=1, stop_words=("the",)))
    with pytest.raises(PS2StreamError, match=r"subscribe 's': .*stop words"):
        matcher.subscribe(ps2.Subscription("s", "the", LONDON))


def test_what_is_no_event_and_no_text_is_named() -> None:
    with pytest.raises(TypeError, match="an event must be a Publication"):
        ps2.match(["x"])
    with pytest.raises(PS2StreamError, match="must be valid Unicode"):
        ps2.Publication("p", "\ud800", lat=0.0, lon=0.0)
