"""The first plan is made from the valid events of a sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.streams import SETTINGS, TOKENIZER, events_of, plan_for, publish, subscribe, unsubscribe
from ps2stream.errors import JournalError
from ps2stream.journal import Journal
from ps2stream.model.schemas import EVENTS
from ps2stream.pipeline.planning import journal_sample, sample_of
from ps2stream.text.frequencies import frequency

pytestmark = pytest.mark.kernel


def test_events_that_would_be_rejected_do_not_count() -> None:
    rows = (
        publish(1, "p", "fire rain", lon=3.0, lat=4.0),
        publish(2, "q", lat=1000.0),
        publish(2, "r"),
        subscribe(4, "a", "fire OR (rain AND storm)", min_lon=1.0),
        subscribe(5, "b", "fire AND"),
        unsubscribe(6, "a"),
    )
    sample = sample_of(events_of(*rows), SETTINGS)
    assert (sample.n_publications, sample.n_subscriptions) == (1, 1)
    assert (sample.lon.tolist(), sample.lat.tolist()) == ([3.0], [4.0])
    assert sample.bounds.tolist() == [1.0, -90.0, 180.0, 90.0]
    assert np.diff(sample.term_offsets).tolist() in ([1, 2], [2, 1])
    assert set(sample.terms.values) == set(TOKENIZER.tokenize(events_of(*rows[:1]).column("text")).values)


def test_a_plan_counts_the_terms_of_the_sample() -> None:
    events = events_of(publish(1, "p", "fire rain"), publish(2, "q", "fire"))
    plan = plan_for(events)
    fire, rain = TOKENIZER.tokenize(events.column("text")).values[:2]
    assert sorted(int(frequency(plan.frequencies, term)) for term in (fire, rain)) == [1, 2]
    assert plan.n_workers == SETTINGS.n_workers


def test_nothing_is_a_sample_too() -> None:
    assert plan_for(events_of()).n_workers == SETTINGS.n_workers


def test_a_sample_of_a_journal_is_its_beginning(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal", create=True, durable=False) as journal:
        for start in range(0, 40, 10):
            journal.append(events_of(*(publish(0, f"p{start + i}") for i in range(10))))
    sample = journal_sample(tmp_path / "journal", 15)
    assert sample.schema == EVENTS
    assert sample.column("id").to_pylist()[:10] == [f"p{i}" for i in range(10)]
    assert 10 <= sample.num_rows <= 20
    assert journal_sample(tmp_path / "journal", 0).num_rows == 0
    assert journal_sample(tmp_path / "journal", 1000).num_rows == 40


def test_a_sample_of_a_journal_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        journal_sample(tmp_path / "journal", 15)
