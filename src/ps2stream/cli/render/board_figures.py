"""The board of a job, as the job has left it: checked, and with names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ps2stream.errors import StateError

#: What a role is there for, by which its rate is told; roles in the order in which events pass them.
_WORK = {
    "driver": ("batches", "batches"),
    "registrar": ("updates", "updates"),
    "dispatcher": ("publications", "publications"),
    "worker": ("received_publications", "publications"),
    "merger": ("delivered_matches", "matches"),
}
_SUBSCRIPTIONS = ("subscriptions", "stored_subscriptions")


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Quantiles of the last seconds; None where nothing was measured in them."""

    p50_s: float | None
    p90_s: float | None
    p99_s: float | None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Quantiles:
        p50, p90, p99 = (
            None if values[name] is None else float(values[name]) for name in ("p50", "p90", "p99")
        )
        return cls(p50, p90, p99)


NO_QUANTILES = Quantiles(None, None, None)


@dataclass(frozen=True, slots=True)
class RoleFigures:
    """One role; what it does not measure is None."""

    role: str
    number: int
    host: str
    work: str
    per_s: float
    busy: float
    n_subscriptions: int | None
    lag: int | None
    position: int | None
    horizon: int | None
    n_restarts: int
    age_s: float

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RoleFigures:
        role, rates, gauges = str(values["role"]), values["rates"], values["gauges"]
        counter, work = _WORK.get(role, ("batches", "batches"))
        lags = [float(value) for key, value in gauges.items() if "lag_events" in key]
        held = [float(gauges[name]) for name in _SUBSCRIPTIONS if name in gauges]
        return cls(
            role,
            int(values["number"]),
            str(values["host"]),
            work,
            float(rates.get(counter, 0.0)),
            float(rates.get("busy_seconds", 0.0)),
            round(sum(held)) if held else None,
            round(sum(lags)) if lags else None,
            _whole(gauges.get("position")),
            _whole(gauges.get("horizon")),
            round(float(values["counters"].get("restarts", 0))),
            float(gauges["age_seconds"]),
        )


@dataclass(frozen=True, slots=True)
class BoardFigures:
    """A job as a whole, over the last ``window_s`` seconds, and its roles."""

    engine: str
    up_s: float
    window_s: float
    rates: Mapping[str, float]
    counts: Mapping[str, float]
    n_subscriptions: int
    lags: Mapping[str, int]
    latency: Quantiles
    batch: Quantiles
    commit: Quantiles
    roles: tuple[RoleFigures, ...]

    @classmethod
    def of(cls, board: Mapping[str, Any]) -> BoardFigures:
        """Read what ``Board.snapshot`` has made."""
        try:
            job = board["job"]
            quantiles = {name: Quantiles.of(each) for name, each in job["quantiles"].items()}
            return cls(
                str(board["engine"]),
                float(board["up_s"]),
                float(board["window_s"]),
                {name: float(value) for name, value in job["rates"].items()},
                {name: float(value) for name, value in job["counters"].items()},
                round(float(job["subscriptions"])),
                {topic: round(float(lag)) for topic, lag in job["lag_events"].items()},
                Quantiles.of(job["latency"]),
                quantiles.get("batch_seconds", NO_QUANTILES),
                quantiles.get("commit_seconds", NO_QUANTILES),
                tuple(sorted(map(RoleFigures.of, board["roles"]), key=_by_flow)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(f"the board that the job has left cannot be read: {error!r}") from error

    def rate(self, name: str) -> float:
        return self.rates.get(name, 0.0)

    def count(self, name: str) -> int:
        return round(self.counts.get(name, 0.0))


def _by_flow(figures: RoleFigures) -> tuple[int, str, int]:
    """Order roles as events pass them."""
    known = list(_WORK)
    return known.index(figures.role) if figures.role in known else len(known), figures.role, figures.number


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
