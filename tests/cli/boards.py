"""The board of a job, made up of what roles tell."""

from __future__ import annotations

from typing import Any

from ps2stream.metrics.board import Board
from ps2stream.metrics.recorder import Recorder


def full_board() -> Board:
    """Return the board of a job with two workers that has matched for ten seconds."""
    now = 0.0
    board = Board("realtime", lambda: now)
    roles = _roles()
    for recorder in roles:
        board.post(recorder.measures())
    driver, registrar, dispatcher, *workers = roles
    registrar.count("updates", 50)
    registrar.set("subscriptions", 1_000)
    dispatcher.count("publications", 20_000)
    dispatcher.count("discarded_publications", 5_000)
    dispatcher.set("lag_events", 1_200, "alerts.publications")
    for worker in workers:
        worker.count("received_publications", 9_000)
        worker.count("candidates", 30_000)
        worker.count("delivered_matches", 100)
        worker.count("busy_seconds", 2.5)
        worker.set("stored_subscriptions", 600)
        worker.set("position", 101)
        worker.set("horizon", 99)
        worker.observe("delivery_latency_seconds", [0.02] * 100)
    driver.count("batches", 20)
    driver.count("rejected_records", 3)
    now = 10.0
    for recorder in roles:
        board.post(recorder.measures())
    board.post(Recorder("worker", 1, 2, "host-b").measures())
    return board


def board_snapshot(**others: Any) -> dict[str, Any]:
    return {**full_board().snapshot(), **others}


def _roles() -> list[Recorder]:
    names = [("driver", 0), ("registrar", 0), ("dispatcher", 0), ("worker", 0), ("worker", 1)]
    return [Recorder(role, number, 1, "host-a") for role, number in names]
