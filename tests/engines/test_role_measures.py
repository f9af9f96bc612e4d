"""What a tally has of roles is what they measured, under the names that all engines use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ps2stream.config import Settings
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.inline import InlineEngine
from ps2stream.engines.meter import Meter
from ps2stream.engines.role_measures import measures_of, record_batch
from ps2stream.metrics.board import Board
from ps2stream.metrics.measures import RoleMeasures
from ps2stream.metrics.names import metric_of
from ps2stream.metrics.recorder import Recorder
from ps2stream.model.events import split
from ps2stream.model.schemas import PUBLISH
from ps2stream.planning.first_plan import first_plan
from ps2stream.roles.reports import DispatcherReport, MergerReport, WorkerReport
from ps2stream.store.traffic import Traffic
from ps2stream.testing.generators import random_events

REPORTS = (
    DispatcherReport(0, 10, 4, 1, 6, 0.5),
    WorkerReport(0, 6, 2, 30, 3, 7, 1_000, 0.25, 0.1, 0.0, "host-b", 0.125),
    MergerReport(0, 3, 2, 0.125),
    Traffic(gets=3),
)
DONE = BatchDone(0, (), REPORTS, 2, 1, 7, 0.25, 0.5, driver_traffic=Traffic(puts=2), commit_s=0.01)


def by_role(measures: list[RoleMeasures]) -> dict[tuple[str, int], RoleMeasures]:
    return {(each.role, each.number): each for each in measures}


def test_a_meter_tells_what_each_role_did_in_all_batches() -> None:
    meter = Meter(Settings(n_workers=2, n_dispatchers=1))
    for batch_id in range(2):
        meter.add(replace(DONE, batch_id=batch_id))
    roles = by_role(meter.measures(n_restarts=3))
    assert roles["dispatcher", 0].counters == {
        "publications": 20,
        "discarded_publications": 8,
        "sent_publications": 12,
        "busy_seconds": 1.0,
    }
    worker = roles["worker", 0]
    assert worker.counters == {
        "received_publications": 12,
        "applied_updates": 4,
        "candidates": 60,
        "matches": 6,
        "busy_seconds": 0.5,
        "rebuilds": 2,
        "moves": 0,
    }
    assert worker.gauges == {"stored_subscriptions": 7, "index_bytes": 1_000}
    assert worker.host == "host-b"
    assert roles["worker", 1].counters["candidates"] == 0
    assert roles["registrar", 0].counters == {"updates": 4, "busy_seconds": 0.5}
    assert roles["registrar", 0].gauges == {"subscriptions": 7}
    assert roles["merger", 0].counters == {"delivered_matches": 6, "busy_seconds": 0.25}
    driver = roles["driver", 0]
    assert driver.counters == {
        "batches": 2,
        "rejected_records": 6,
        "adjustments": 0,
        "restarts": 3,
        "store_requests": 10,
    }
    assert driver.histograms["batch_seconds"].sum_s == pytest.approx(1.0)
    assert driver.histograms["commit_seconds"].sum_s == pytest.approx(0.02)


class Waited:
    """A source, as far as a meter asks it."""

    n_publications, n_updates, last_seq = 3, 0, 17

    def waits(self, now: float) -> list[tuple[float, int]]:
        return [(0.25, 3)]


@pytest.mark.parametrize("keeps", [True, False])
def test_latencies_are_told_whether_all_of_them_are_kept_or_not(keeps: bool) -> None:
    meter = Meter(Settings(n_workers=2, n_dispatchers=1), keeps_latencies=keeps)
    meter.add(replace(DONE, sources=(Waited(),)))  # type: ignore[arg-type]
    driver = by_role(meter.measures())["driver", 0]
    assert driver.histograms["delivery_latency_seconds"].n == 3
    assert driver.gauges == {"position": 17, "horizon": 18}
    assert meter.recent().latency_p50_ms == 250
    assert meter.tally.latencies == ([(0.25, 3)] if keeps else [])


def test_before_the_first_batch_the_subscriptions_are_those_of_the_start() -> None:
    meter = Meter(Settings())
    assert by_role(meter.measures(41))["registrar", 0].gauges == {"subscriptions": 41}


def test_every_name_is_one_of_the_list() -> None:
    meter = Meter(Settings(n_workers=2, n_dispatchers=1))
    meter.add(DONE)
    for each in meter.measures():
        for key in (*each.counters, *each.gauges, *each.histograms):
            assert metric_of(key)[0] is not None, key


def test_latencies_count_every_event_and_the_position_is_the_last_seq() -> None:
    driver = Recorder("driver", 0)
    record_batch(driver, 0.5, [(0.02, 3), (0.04, 5)], last_seq=17)
    told = driver.measures()
    assert told.histograms["delivery_latency_seconds"].n == 8
    assert told.histograms["delivery_latency_seconds"].sum_s == pytest.approx(0.26)
    assert "commit_seconds" not in told.histograms
    assert told.gauges == {"position": 17, "horizon": 18}


def test_the_sums_of_an_inline_engine_are_those_of_its_events() -> None:
    settings = Settings(n_workers=3, n_dispatchers=2)
    events = random_events(400, seed=5).combine_chunks().to_batches()[0]
    engine = InlineEngine(first_plan(events, settings), settings)
    outcome = engine.process(events)
    board = Board("inline")
    tally = engine.tally
    board.post(*measures_of(tally, Recorder("driver", 0), tally.n_subscriptions))
    job = board.snapshot()["job"]
    publications, updates = split(events)
    assert job["counters"]["updates"] == updates.num_rows
    n_rejected = outcome.rejected.column("op").to_pylist().count(PUBLISH)
    assert job["counters"]["publications"] == publications.num_rows - n_rejected
    assert job["counters"]["rejected_records"] == outcome.rejected.num_rows
    assert job["counters"]["delivered_matches"] == job["counters"]["matches"] == outcome.matches.num_rows
    assert job["counters"]["candidates"] >= outcome.matches.num_rows > 0
    assert job["subscriptions"] == tally.n_subscriptions
