"""The events of a journal, as a deployment uses them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engines.streams import events_of, publish, subscribe, unsubscribe
from ps2stream.deployment.deployment_events import DeploymentEvents
from ps2stream.deployment.home import Home
from ps2stream.errors import JournalError
from ps2stream.journal import Journal
from ps2stream.model.schemas import BEFORE_ALL_SEQS, EVENTS, UPDATES
from ps2stream.state.state import State


def _updates(events: DeploymentEvents, after_seq: int) -> list[tuple[int, str]]:
    batches = list(events.updates(after_seq))
    assert all(batch.schema == UPDATES for batch in batches)
    rows = pa.Table.from_batches(batches, UPDATES).to_pylist()
    return [(row["seq"], row["id"]) for row in rows]


@pytest.fixture
def events(home: Home) -> DeploymentEvents:
    """Add two appends: the seqs that events come with do not count."""
    events = home.events(create=True)
    assert list(
        events.append(events_of(subscribe(70, "a"), publish(71, "p", "one"), subscribe(72, "b")))
    ) == [*(1, 2, 3)]
    assert list(events.append(events_of(unsubscribe(5, "a"), publish(6, "p", "two")))) == [4, 5]
    return events


def test_updates_beyond_a_seq_come_in_order(events: DeploymentEvents) -> None:
    assert _updates(events, BEFORE_ALL_SEQS) == [(1, "a"), (3, "b"), (4, "a")]
    assert _updates(events, 1) == [(3, "b"), (4, "a")]
    assert _updates(events, 3) == [(4, "a")]
    assert _updates(events, 4) == []
    assert _updates(events, 100) == []


def test_a_publication_is_found_by_its_id_and_a_text_by_its_seq(events: DeploymentEvents) -> None:
    assert (events.publication("p").text, events.publication("p").seq) == ("two", 5)
    assert [events.text("p", seq) for seq in (2, 5, 3, 9)] == ["one", "two", None, None]
    with pytest.raises(JournalError, match="no publication with the id 'q'"):
        events.publication("q")


def test_the_newest_events_are_whole(events: DeploymentEvents) -> None:
    table = pa.Table.from_batches(events.newest(2), EVENTS)
    assert table.column("seq").to_pylist() == [4, 5]
    assert pa.Table.from_batches(events.newest(1_000), EVENTS).num_rows == 5


def test_what_was_dropped_is_told_and_found_no_more(events: DeploymentEvents, home: Home) -> None:
    assert events.pruned() == 0
    with Journal.open(home.journal) as journal:
        journal.prune(1)
    assert events.pruned() == 1
    assert _updates(events, BEFORE_ALL_SEQS) == [(4, "a")]
    assert events.text("p", 2) is None


def test_it_says_where_it_is_and_can_be_closed(events: DeploymentEvents, home: Home) -> None:
    assert str(events) == f"the journal {home.journal}"
    events.close()
    with pytest.raises(JournalError):
        events.pruned()


def test_only_who_adds_events_makes_a_journal(home: Home) -> None:
    with pytest.raises(JournalError, match="no journal at"):
        home.events()
    assert not home.directory.exists()


def test_the_lag_is_what_no_batch_has_finished(home: Home, events: DeploymentEvents) -> None:
    ledger = State.at(home.state).ledger
    assert events.lags(ledger) == {"journal": 5}
    ledger.finish(0, 3)
    assert events.lags(ledger) == {"journal": 2}
    ledger.finish(1, 5)
    assert events.lags(ledger) == {"journal": 0}
