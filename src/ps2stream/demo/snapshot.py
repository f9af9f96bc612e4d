"""What the demo's screen shows: a running job at one moment, and its end."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SampleMatch:
    """A match as people read it; its strings are as they came from the stream, not yet safe to print."""

    subscription_id: str
    expression: str
    place: str
    text: str


@dataclass(frozen=True, slots=True)
class AdjustmentLine:
    """What load adjustment did, in words, and the time since the start of the demo."""

    elapsed_s: float
    words: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A running job at one moment; rates are of the recent past, counts since the start.

    A latency that was not measured yet is NaN. ``remaining_s`` is None where the demo runs until it is
    stopped. ``worker_busy`` holds the share of the recent past, 0 to 1, that each worker had work.
    ``adjustments`` are all so far, oldest first. ``busy_around`` names the place that most comes from now,
    if the demo has made one busy.
    """

    elapsed_s: float
    remaining_s: float | None
    phase: str
    n_events: int
    n_publications: int
    n_matches: int
    n_rejected: int
    n_discarded: int
    n_subscriptions: int
    events_per_s: float
    matches_per_s: float
    latency_p50_ms: float
    latency_p99_ms: float
    worker_busy: tuple[float, ...] = ()
    worker_subscriptions: tuple[int, ...] = ()
    samples: tuple[SampleMatch, ...] = ()
    adjustments: tuple[AdjustmentLine, ...] = ()
    busy_around: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """A finished run; the rate is the mean over ``elapsed_s``, which counts streaming only."""

    elapsed_s: float
    n_events: int
    n_publications: int
    n_matches: int
    n_rejected: int
    n_discarded: int
    n_subscriptions: int
    latency_p50_ms: float
    latency_p99_ms: float
    worker_busy: tuple[float, ...] = ()
    worker_subscriptions: tuple[int, ...] = ()
    n_adjustments: int = 0
    moved_bytes: int = 0
    paused_s: float = 0.0

    @property
    def events_per_s(self) -> float:
        return self.n_events / self.elapsed_s if self.elapsed_s > 0 else 0.0
