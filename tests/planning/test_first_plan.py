"""The first plan is made from the valid events of a sample."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engines.streams import (
    SETTINGS,
    TOKENIZER,
    events_of,
    plan_for,
    publish,
    subscribe,
    unsubscribe,
)
from ps2stream.errors import JournalError, SchemaError
from ps2stream.journal import Journal
from ps2stream.model.schemas import EVENTS
from ps2stream.partitioning.load import Costs, LoadFunction
from ps2stream.partitioning.sample import CHURN
from ps2stream.planning import calibration
from ps2stream.planning.first_plan import (
    costs_of,
    first_plan,
    journal_sample,
    log_sample,
    plan_of,
    sample_from,
    sample_of,
)
from ps2stream.sources.event_log import EventLog
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


def test_a_sample_knows_how_many_subscriptions_it_stands_for() -> None:
    rows = [
        *(subscribe(seq, f"s{seq}") for seq in range(100)),
        *(publish(seq, f"p{seq}") for seq in range(100, 140)),
        *(unsubscribe(seq, f"s{seq - 140}") for seq in range(140, 148)),
    ]
    sample = sample_from([events_of(*rows)], replace(SETTINGS, sample_events=20))
    assert (sample.n_publications, sample.n_subscriptions, sample.n_live) == (10, 10, 92)
    assert sample.churn == pytest.approx(8 / 40 / 2)
    few = sample_from([events_of(*rows[:2], *rows[-8:])], SETTINGS)
    assert (few.n_subscriptions, few.n_live, few.churn) == (2, 2, CHURN)


def test_a_file_gives_the_sample_in_place_of_the_stream(tmp_path: Path) -> None:
    rows = [publish(seq, f"p{seq}", lon=float(seq)) for seq in range(100)]
    pq.write_table(pa.Table.from_pylist(rows, EVENTS), tmp_path / "sample.parquet")
    chosen = replace(
        SETTINGS, sample_file=tmp_path / "sample.parquet", sample_events=100, sample_prefix_events=10
    )
    sample = sample_from([events_of(publish(1, "p", lon=-9.0))], chosen)
    assert sample.n_publications == 50
    assert set(sample.lon) < {float(seq) for seq in range(100)}
    assert sample.lon.max() > 50, "all of the file is drawn from, not only a prefix"
    assert first_plan(events_of(), chosen).frequencies.counts.tolist() == [50]


def test_a_missing_sample_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"gone\.parquet: no such file"):
        sample_from([], replace(SETTINGS, sample_file=tmp_path / "gone.parquet"))


def test_a_log_out_of_order_is_sampled_in_the_order_of_its_seqs(tmp_path: Path) -> None:
    rows = [publish(seq, f"p{seq}", lon=float(seq)) for seq in (9, 3, 7, 1, 5, 0, 8, 2, 6, 4)]
    pq.write_table(pa.Table.from_pylist(rows, EVENTS), tmp_path / "log.parquet")
    short = replace(SETTINGS, sample_events=1, sample_prefix_events=5)
    for seed in range(10):
        (lon,) = log_sample(EventLog(tmp_path / "log.parquet"), replace(short, sample_seed=seed)).lon
        assert lon < 5


def _journal(directory: Path, n_publications: int) -> Path:
    with Journal.open(directory / "journal", create=True, durable=False) as journal:
        journal.append(events_of(*(subscribe(0, f"s{i}") for i in range(20))))
        for start in range(0, n_publications, 10):
            journal.append(events_of(*(publish(0, "p", lon=float(start + i)) for i in range(10))))
    return directory / "journal"


def test_a_sample_of_a_journal_is_drawn_from_its_beginning(tmp_path: Path) -> None:
    journal = _journal(tmp_path, n_publications=80)
    some = replace(SETTINGS, sample_events=20, sample_prefix_events=50)
    sample = journal_sample(journal, some)
    assert (sample.n_publications, sample.n_subscriptions, sample.n_live) == (10, 10, 20)
    assert max(sample.lon) < 30
    assert journal_sample(journal, SETTINGS).n_publications == 80
    assert journal_sample(journal, replace(SETTINGS, sample_events=0)).n_publications == 0
    again = journal_sample(journal, some)
    assert (again.lon.tolist(), again.bounds.tolist()) == (sample.lon.tolist(), sample.bounds.tolist())


def test_a_journal_without_events_gives_a_plan_all_the_same(tmp_path: Path) -> None:
    Journal.open(tmp_path / "journal", create=True, durable=False).close()
    sample = journal_sample(tmp_path / "journal", SETTINGS)
    assert (sample.n_publications, sample.n_subscriptions, sample.n_live) == (0, 0, 0)
    assert plan_of(sample, SETTINGS).n_workers == SETTINGS.n_workers


def test_a_sample_of_a_journal_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        journal_sample(tmp_path / "journal", SETTINGS)


@pytest.mark.parametrize("load", ["candidates", "paper"])
def test_costs_are_those_of_the_load_function_that_was_chosen(load: LoadFunction) -> None:
    sample = sample_of(events_of(publish(1, "p"), subscribe(2, "s")), SETTINGS)
    assert costs_of(sample, replace(SETTINGS, load=load)).load == load


def test_costs_are_measured_when_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Costs(1.0, 2.0, 3.0, 4.0)
    monkeypatch.setattr(calibration, "calibrate", lambda sample, load: measured)
    sample = sample_of(events_of(publish(1, "p"), subscribe(2, "s")), SETTINGS)
    assert costs_of(sample, replace(SETTINGS, calibrate=True)) == measured
    assert costs_of(sample, SETTINGS) != measured
