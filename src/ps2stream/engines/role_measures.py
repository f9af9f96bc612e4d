"""What the roles of a job measured, from the tally of its batches: the driver tells it for them.

Of engines whose roles live for a batch, or for a call. Resident roles tell it themselves (``metrics``).
"""

from __future__ import annotations

from ps2stream.engines.tally import DispatcherTally, Tally, WorkerTally
from ps2stream.metrics.board import LATENCY
from ps2stream.metrics.measures import RoleMeasures
from ps2stream.metrics.recorder import Recorder


def record_batch(
    driver: Recorder, duration_s: float, waits: list[tuple[float, int]], last_seq: int, commit_s: float = 0.0
) -> None:
    """Enter a batch into what the driver measures; ``waits``: (seconds from append to delivery, events)."""
    driver.count("batches")
    driver.observe("batch_seconds", duration_s)
    if commit_s:
        driver.observe("commit_seconds", commit_s)
    if waits:
        driver.observe(LATENCY, [wait for wait, _ in waits], [n_events for _, n_events in waits])
    driver.set("position", last_seq)
    driver.set("horizon", last_seq + 1)


def measures_of(
    tally: Tally, driver: Recorder, n_subscriptions: int, n_restarts: int = 0
) -> list[RoleMeasures]:
    """Return the measures of all roles; they have the incarnation of the driver, which counts for them."""
    told = driver.measures()
    store_requests = (tally.driver_traffic + tally.task_traffic).requests
    of_job = {
        "rejected_records": tally.n_rejected,
        "adjustments": len(tally.adjustments),
        "restarts": n_restarts,
        "store_requests": store_requests,
    }

    def measures(
        role: str,
        number: int,
        counters: dict[str, float],
        gauges: dict[str, float] | None = None,
        host: str = "",
    ) -> RoleMeasures:
        return RoleMeasures(role, number, driver.incarnation, host or driver.host, counters, gauges or {})

    return [
        RoleMeasures(
            "driver",
            0,
            driver.incarnation,
            driver.host,
            {**told.counters, **of_job},
            told.gauges,
            told.histograms,
        ),
        measures(
            "registrar",
            0,
            {"updates": tally.n_updates, "busy_seconds": tally.registrar_busy_s},
            {"subscriptions": n_subscriptions},
        ),
        *(
            measures("dispatcher", number, _of_dispatcher(each))
            for number, each in enumerate(tally.dispatchers)
        ),
        *(
            measures("worker", number, _of_worker(each), _sizes(each), each.host)
            for number, each in enumerate(tally.workers)
        ),
        measures("merger", 0, {"delivered_matches": tally.n_matches, "busy_seconds": tally.merger_busy_s}),
    ]


def _of_dispatcher(tally: DispatcherTally) -> dict[str, float]:
    return {
        "publications": tally.n_publications,
        "discarded_publications": tally.n_discarded,
        "sent_publications": tally.n_sent,
        "busy_seconds": tally.busy_s,
    }


def _of_worker(tally: WorkerTally) -> dict[str, float]:
    return {
        "received_publications": tally.n_publications,
        "applied_updates": tally.n_updates,
        "candidates": tally.n_candidates,
        "matches": tally.n_matches,
        "busy_seconds": tally.busy_s,
        "rebuilds": tally.n_rebuilds,
        "moves": tally.n_moves,
    }


def _sizes(tally: WorkerTally) -> dict[str, float]:
    return {"stored_subscriptions": tally.n_subscriptions, "index_bytes": tally.n_bytes}
