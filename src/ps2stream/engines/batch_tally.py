"""The tally of a running stream: its batches added up."""

from __future__ import annotations

from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.tally import Tally
from ps2stream.roles.reports import DispatcherReport, MergerReport, WorkerReport
from ps2stream.sources.journal_range import JournalRange
from ps2stream.store.traffic import Traffic


def tally_batch(tally: Tally, done: BatchDone) -> None:
    """Enter the reports of a batch into a tally."""
    tally.n_updates += done.n_updates
    tally.n_rejected += done.n_rejected_updates
    tally.n_subscriptions = done.n_subscriptions
    tally.registrar_busy_s += done.registrar_busy_s
    for report in done.reports:
        if isinstance(report, DispatcherReport):
            tally.n_publications += report.n_publications
            dispatcher = tally.dispatchers[report.dispatcher]
            dispatcher.n_publications += report.n_publications
            dispatcher.n_discarded += report.n_discarded
            dispatcher.n_sent += report.n_sent
            dispatcher.busy_s += report.busy_s
        elif isinstance(report, WorkerReport):
            tally.workers[report.worker].add(report)
        elif isinstance(report, MergerReport):
            tally.n_matches += report.n_matches
            tally.n_rejected += report.n_rejected
            tally.merger_busy_s += report.busy_s
        elif isinstance(report, Traffic):
            tally.task_traffic += report
    tally.driver_traffic += done.driver_traffic
    for adjustment in done.adjustments:
        tally.adjusted(adjustment)
    tally.mark()


def read_up_to(done: BatchDone) -> int:
    """Return the position of the journal that a batch has read up to; 0 where it does not come from one."""
    return max((each.upto for each in done.sources if isinstance(each, JournalRange)), default=0)
