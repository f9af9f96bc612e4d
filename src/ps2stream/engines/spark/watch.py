"""Watch a running stream: add up its batches, and say in our words why it ended."""

from __future__ import annotations

import re

from pyspark.sql.streaming.query import StreamingQuery

from ps2stream.engines.spark.job import BatchDone
from ps2stream.engines.tally import Tally
from ps2stream.errors import PS2StreamError, StateError
from ps2stream.roles.reports import DispatcherReport, MergerReport, WorkerReport

_OWN_ERROR = re.compile(r"ps2stream\.errors\.(\w+): (.+)")


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
            worker = tally.workers[report.worker]
            worker.n_publications += report.n_publications
            worker.n_updates += report.n_updates
            worker.n_candidates += report.n_candidates
            worker.n_matches += report.n_matches
            worker.n_subscriptions, worker.n_bytes = report.n_subscriptions, report.n_bytes
            worker.busy_s += report.busy_s
        elif isinstance(report, MergerReport):
            tally.n_matches += report.n_matches
            tally.n_rejected += report.n_rejected
            tally.merger_busy_s += report.busy_s
    for adjustment in done.adjustments:
        tally.adjusted(adjustment)
    tally.mark()


def raise_failure(query: StreamingQuery) -> None:
    """Raise why a stream has ended by itself; our own errors come out of Spark's wrapping."""
    if query.isActive:
        return
    failure = query.exception()
    if failure is None:
        raise StateError("the stream was stopped")
    raise PS2StreamError(_in_our_words(str(failure))) from failure


def _in_our_words(failure: str) -> str:
    own = _OWN_ERROR.search(failure)
    if own:
        return own[2]
    if "No space left on device" in failure:  # Java does not say where
        return (
            "no space left on a disk that Spark writes to: that of the state (its checkpoint) or that of "
            f"Spark's own files (SPARK_LOCAL_DIRS): {failure}"
        )
    return f"the stream failed: {failure}"
