from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from ps2stream.balance.adjustments import Adjustment
from ps2stream.engines.tally import Tally, weighted_quantiles


def test_quantiles_count_every_event_of_a_batch() -> None:
    values = [(1.0, 1), (0.1, 98), (5.0, 1)]
    assert weighted_quantiles(values, (0.5, 0.98, 0.99, 1.0)) == [100.0, 100.0, 1000.0, 5000.0]


def test_without_events_there_is_no_latency() -> None:
    assert all(map(math.isnan, weighted_quantiles([], (0.5, 0.99))))


def test_the_busiest_role_sets_the_projected_pace() -> None:
    tally = Tally.of(2, 1)
    tally.n_publications, tally.n_updates = 900, 100
    tally.workers[0].busy_s, tally.workers[1].busy_s, tally.dispatchers[0].busy_s = 0.5, 2.0, 1.0
    report = tally.report(wall_s=4.0)
    assert report["tuples_per_s"] == 250.0
    assert report["projected_tuples_per_s"] == 500.0
    assert len(report["workers"]) == 2


def test_a_report_is_plain_json_even_of_nothing() -> None:
    assert json.loads(json.dumps(Tally.of(1, 1).report(0.0), allow_nan=False))["events"] == 0


def test_loading_is_left_out_of_the_matching_rate() -> None:
    tally = Tally.of(1, 1)
    tally.marks = [(10.0, 100, 0), (20.0, 1000, 0), (21.0, 1500, 400), (23.0, 2500, 1200)]
    assert tally.matching_tuples_per_s() == pytest.approx(500.0)


def test_a_tally_does_not_grow_with_the_batches_of_a_stream() -> None:
    tally = Tally.of(1, 1)
    for n_publications in [0] * 50 + [*range(1, 50)]:
        tally.n_publications = n_publications
        tally.mark()
    assert [mark[2] for mark in tally.marks] == [0, 49]
    assert tally.store_traffic()["batches"] == 99


def test_a_run_without_publications_has_no_matching_rate() -> None:
    tally = Tally.of(1, 1)
    assert math.isnan(tally.matching_tuples_per_s())
    tally.mark()
    assert math.isnan(tally.matching_tuples_per_s())


def test_an_adjustment_is_entered_once_and_what_becomes_known_of_it_takes_its_place() -> None:
    tally = Tally.of(2, 1)
    first = Adjustment("local", 3, "now", "a test", 1, 2, (3.0, 1.0))
    second = replace(first, batch_id=9, kind="switch")
    known = replace(first, loads_after=(2.0, 2.0), n_delayed=50)
    for record in (first, second, known):
        tally.adjusted(record)
    assert tally.adjustments == [known, second], "in the order in which they were made"
    report = json.loads(json.dumps(tally.report(1.0), allow_nan=False))
    assert [each["kind"] for each in report["adjustments"]] == ["local", "switch"]
    assert report["adjustments"][0]["loads_after"] == [2.0, 2.0]
