"""The tally of a run whose roles report of themselves."""

from __future__ import annotations

from ps2stream.config import Settings
from ps2stream.engines.tally import Tally
from ps2stream.metrics.board import Board


def tally_of(board: Board, settings: Settings) -> Tally:
    """Add up what roles have reported so far."""
    tally = Tally.of(settings.n_workers, settings.n_dispatchers)
    for standing in board.standings():
        counters, gauges, number = standing.total.counters, standing.gauges, standing.newest.number
        tally.n_rejected += int(counters.get("rejected_records", 0))
        busy_s = counters.get("busy_seconds", 0.0)
        if standing.newest.role == "registrar":
            tally.n_updates = int(counters.get("updates", 0))
            tally.n_subscriptions = int(gauges.get("subscriptions", 0))
            tally.registrar_busy_s = busy_s
        elif standing.newest.role == "dispatcher" and number < len(tally.dispatchers):
            dispatcher = tally.dispatchers[number]
            dispatcher.n_publications = int(counters.get("publications", 0))
            dispatcher.n_discarded = int(counters.get("discarded_publications", 0))
            dispatcher.n_sent = int(counters.get("sent_publications", 0))
            dispatcher.busy_s = busy_s
            tally.n_publications += dispatcher.n_publications
        elif standing.newest.role == "worker" and number < len(tally.workers):
            worker = tally.workers[number]
            worker.n_publications = int(counters.get("received_publications", 0))
            worker.n_updates = int(counters.get("applied_updates", 0))
            worker.n_candidates = int(counters.get("candidates", 0))
            worker.n_matches = int(counters.get("delivered_matches", 0))
            worker.n_subscriptions = int(gauges.get("stored_subscriptions", 0))
            worker.n_bytes = int(gauges.get("index_bytes", 0))
            worker.busy_s, worker.host = busy_s, standing.newest.host
            tally.n_matches += worker.n_matches
    return tally
