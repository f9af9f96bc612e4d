"""What batches report is added up; no session is needed for that."""

from __future__ import annotations

from dataclasses import replace

from ps2stream.balance.adjustments import Adjustment
from ps2stream.engines.batch_tally import tally_batch
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.tally import Tally
from ps2stream.roles.reports import DispatcherReport, MergerReport
from ps2stream.store.traffic import Traffic

ADJUSTMENT = Adjustment("local", 2, "2026-03-01T12:00:00+00:00", "why not", 1, 2, (4.0, 1.0))


def _done(batch_id: int, *adjustments: Adjustment) -> BatchDone:
    return BatchDone(batch_id, (), (), 3, 1, 7, 0.25, 0.5, adjustments)


def test_adjustments_of_batches_are_kept_each_once_with_what_became_known() -> None:
    tally = Tally.of(2, 1)
    tally_batch(tally, _done(1))
    assert tally.adjustments == []
    tally_batch(tally, _done(2, ADJUSTMENT))
    assert tally.adjustments == [ADJUSTMENT]
    known = replace(ADJUSTMENT, loads_after=(3.0, 2.0))
    newer = replace(ADJUSTMENT, batch_id=5, plan_before=2, plan_after=3)
    tally_batch(tally, _done(5, newer, known))
    assert tally.adjustments == [known, newer]
    assert (tally.n_updates, tally.n_rejected, tally.n_subscriptions) == (9, 3, 7)
    assert [each["batch_id"] for each in tally.report(1.0)["adjustments"]] == [2, 5]


def test_reports_of_roles_are_added_up() -> None:
    tally = Tally.of(1, 1)
    reports = (DispatcherReport(0, 10, 4, 1, 6, 0.5), MergerReport(0, 3, 2, 0.125))
    for batch_id in range(2):
        tally_batch(tally, replace(_done(batch_id), reports=reports))
    assert (tally.n_publications, tally.n_discarded, tally.dispatchers[0].n_sent) == (20, 8, 12)
    assert (tally.n_matches, tally.n_rejected, tally.merger_busy_s) == (6, 6, 0.25)


def test_what_driver_and_tasks_asked_of_the_store_is_added_up_apart() -> None:
    tally = Tally.of(1, 1)
    reports = (Traffic(gets=3, bytes_in=100), Traffic(gets=1, puts=1, bytes_out=50))
    for batch_id in range(2):
        done = replace(_done(batch_id), reports=reports, driver_traffic=Traffic(puts=5, lists=1))
        tally_batch(tally, done)
    assert tally.task_traffic == Traffic(gets=8, puts=2, bytes_in=200, bytes_out=100)
    assert tally.driver_traffic == Traffic(puts=10, lists=2)
    told = tally.report(1.0)["store"]
    assert (told["gets"], told["puts"], told["driver"]["puts"], told["tasks"]["puts"]) == (8, 12, 10, 2)
    assert (told["batches"], told["per_batch"]["puts"], told["per_batch"]["bytes_in"]) == (2, 6.0, 100.0)
