"""The board: the newest measures of all roles, and what can be made of them."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ps2stream.metrics.measures import Histogram, RoleMeasures
from ps2stream.metrics.names import Kind, metric_of

#: Rates and quantiles are those of the last seconds.
WINDOW_S = 10.0
LATENCY = "delivery_latency_seconds"
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


class Totals(NamedTuple):
    """Counters and histograms of a role over all its incarnations."""

    counters: Mapping[str, float]
    histograms: Mapping[str, Histogram]


_NOTHING = Totals({}, {})


class Standing(NamedTuple):
    """One role as it stands; ``recent`` is what came in the last ``recent_s`` seconds."""

    newest: RoleMeasures
    total: Totals
    recent: Totals
    recent_s: float
    age_s: float

    @property
    def gauges(self) -> dict[str, float]:
        return {**self.newest.gauges, "age_seconds": self.age_s}

    def rates(self) -> dict[str, float]:
        """Return the counters per second of the last seconds."""
        return {name: value / self.recent_s for name, value in self.recent.counters.items()}


class Board:
    """Take in measures as they come, in any thread; answer in any.

    A role whose process was started again counts from zero: what earlier incarnations counted is added, so
    that totals never fall, and the start is a restart. What an earlier incarnation still says is ignored.
    Roles have to be heard of every second or so, changed or not: rates are taken between two of their words.
    A board is made before its roles start: what they tell first is new.
    """

    def __init__(self, engine: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.engine = engine
        self._clock = clock
        self._started = clock()
        self._roles: dict[tuple[str, int], _Role] = {}
        self._lock = threading.Lock()

    def post(self, *measures: RoleMeasures) -> None:
        """Take in what roles measured, in the order in which they told it."""
        now = self._clock()
        with self._lock:
            for each in measures:
                key = each.role, each.number
                if key not in self._roles:
                    self._roles[key] = _Role(each, now, max(self._started, now - WINDOW_S))
                else:
                    self._roles[key].take(each, now)

    def standings(self) -> list[Standing]:
        """Return all roles, by role and number."""
        now = self._clock()
        with self._lock:
            return [self._roles[key].standing(now) for key in sorted(self._roles)]

    def snapshot(self) -> dict[str, Any]:
        """Return all there is to know as plain values: the job as a whole, then role by role."""
        standings = self.standings()
        return {
            "at": time.time(),
            "engine": self.engine,
            "up_s": self._clock() - self._started,
            "window_s": WINDOW_S,
            "job": _job(standings),
            "roles": [_role(standing) for standing in standings],
        }


class _Role:
    """What was heard of one role."""

    def __init__(self, first: RoleMeasures, now: float, since: float) -> None:
        """Begin with what a role tells first; it has counted that since some time, at the earliest."""
        self._newest = first
        self._before = _NOTHING  # of the incarnations before
        self._n_restarts = 0
        self._heard_at = now
        self._history: deque[tuple[float, Totals]] = deque([(since, _NOTHING), (now, self._total())])

    def take(self, measures: RoleMeasures, now: float) -> None:
        if measures.incarnation < self._newest.incarnation:
            return
        if measures.incarnation > self._newest.incarnation:
            self._before = _added(self._before, Totals(self._newest.counters, self._newest.histograms))
            self._n_restarts += 1
        self._newest, self._heard_at = measures, now
        self._history.append((now, self._total()))
        self._forget(now)

    def standing(self, now: float) -> Standing:
        self._forget(now)
        (since, then), (_, total) = self._history[0], self._history[-1]
        recent_s = max(now - since, 1e-3)
        return Standing(self._newest, total, _since(total, then), recent_s, now - self._heard_at)

    def _forget(self, now: float) -> None:
        """Keep what was heard in the window, and the last before it, which rates are measured from."""
        while len(self._history) > 1 and self._history[1][0] <= now - WINDOW_S:
            self._history.popleft()

    def _total(self) -> Totals:
        total = _added(self._before, Totals(self._newest.counters, self._newest.histograms))
        restarts = total.counters.get("restarts", 0) + self._n_restarts
        return total._replace(counters={**total.counters, "restarts": restarts})


def _added(one: Totals, other: Totals) -> Totals:
    counters = dict(one.counters)
    for key, value in other.counters.items():
        counters[key] = counters.get(key, 0) + value
    return Totals(counters, merged(one.histograms, other.histograms))


def merged(*several: Mapping[str, Histogram]) -> dict[str, Histogram]:
    """Add up histograms of the same name."""
    result: dict[str, Histogram] = {}
    for histograms in several:
        for name, each in histograms.items():
            result.setdefault(name, Histogram()).merge(each)
    return result


def _since(now: Totals, then: Totals) -> Totals:
    counters = {key: value - then.counters.get(key, 0) for key, value in now.counters.items()}
    histograms = {
        key: each.since(then.histograms[key]) if key in then.histograms else each
        for key, each in now.histograms.items()
    }
    return Totals(counters, histograms)


def _role(standing: Standing) -> dict[str, Any]:
    newest = standing.newest
    return {
        "role": newest.role,
        "number": newest.number,
        "host": newest.host,
        "incarnation": newest.incarnation,
        "counters": dict(standing.total.counters),
        "gauges": standing.gauges,
        "rates": standing.rates(),
        "quantiles": {name: _quantiles(each) for name, each in standing.recent.histograms.items()},
    }


def _job(standings: list[Standing]) -> dict[str, Any]:
    """Add roles up: every count is that of one role only."""
    counters = _summed(each.total.counters for each in standings)
    rates = _summed(each.rates() for each in standings)
    recent = merged(*(each.recent.histograms for each in standings))
    gauges = [each.newest.gauges for each in standings]
    return {
        "counters": counters,
        "rates": rates,
        "subscriptions": sum(each.get("subscriptions", 0) for each in gauges),
        "lag_events": _lags(gauges),
        "position": max((each["position"] for each in gauges if "position" in each), default=None),
        "horizon": min((each["horizon"] for each in gauges if "horizon" in each), default=None),
        "latency": _quantiles(recent.get(LATENCY, Histogram())),
        "quantiles": {name: _quantiles(each) for name, each in recent.items()},
    }


def _summed(several: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for values in several:
        for key, value in values.items():
            total[key] = total.get(key, 0) + value
    return total


def _lags(gauges: list[Mapping[str, float]]) -> dict[str, float]:
    """Return the events that wait, by topic: each role reads a part of its own."""
    lags: dict[str, float] = {}
    for key, value in (item for each in gauges for item in each.items()):
        metric, topic = metric_of(key)
        if metric is not None and metric.kind is Kind.GAUGE and metric.name == "lag_events":
            lags[topic] = lags.get(topic, 0) + value
    return lags


def _quantiles(histogram: Histogram) -> dict[str, float | None]:
    """Return quantiles in seconds; JSON has no NaN."""
    found = {name: histogram.quantile(q) for name, q in _QUANTILES.items()}
    return {"n": histogram.n, **{name: None if math.isnan(q) else q for name, q in found.items()}}
