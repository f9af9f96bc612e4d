"""Whoever stops resident roles is heard, also by a registrar that starts just then."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ps2stream.engines.spark import realtime
from ps2stream.engines.spark.realtime import RealtimeStream
from ps2stream.errors import BrokerError


def stream_of(job: threading.Thread) -> RealtimeStream:
    nothing: Any = None
    task: Any = SimpleNamespace(config=SimpleNamespace(run="mine"))
    return RealtimeStream(nothing, task, nothing, nothing, _job=job)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_unheard", [0, 2])
def test_a_stop_is_told_until_it_is_heard(monkeypatch: pytest.MonkeyPatch, n_unheard: int) -> None:
    heard = threading.Event()
    told: list[str] = []

    def tell(self: RealtimeStream, words: str) -> None:
        told.append(words)
        if len(told) == 1 and n_unheard:
            raise BrokerError("away")
        if len(told) > n_unheard:
            heard.set()

    monkeypatch.setattr(realtime, "_TELL_S", 0.05)
    monkeypatch.setattr(RealtimeStream, "_tell", tell)
    job = threading.Thread(target=heard.wait, daemon=True)
    job.start()
    stream = stream_of(job)
    stream.stop()
    stream.stop()
    assert not job.is_alive()
    assert set(told) == {"stop mine"}
    assert len(told) > n_unheard
