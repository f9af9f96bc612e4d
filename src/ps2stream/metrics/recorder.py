"""What a role counts with while it works."""

from __future__ import annotations

import functools
import socket
import threading
import time

import numpy.typing as npt

from ps2stream.metrics.measures import Histogram, RoleMeasures
from ps2stream.metrics.names import Kind, labelled, metric_of


class Recorder:
    """Gather the measures of one role from its start on; any thread may take them (``measures``).

    ``incarnation``: as of ``RoleMeasures``; the time in nanoseconds where none is given.
    """

    def __init__(
        self, role: str, number: int, incarnation: int | None = None, host: str | None = None
    ) -> None:
        self.role = role
        self.number = number
        self.incarnation = time.time_ns() if incarnation is None else incarnation
        self.host = socket.gethostname() if host is None else host
        self._counters: dict[str, float] = {}
        self._gauges: dict[str, float] = {}
        self._histograms: dict[str, Histogram] = {}
        self._lock = threading.Lock()

    def count(self, name: str, by: float = 1) -> None:
        """Add to a counter."""
        _check(name, Kind.COUNTER)
        with self._lock:
            self._counters[name] = self._counters.get(name, 0) + by

    def set(self, name: str, value: float, label: str = "") -> None:
        """Set a gauge; ``label``: the topic, where it has one."""
        key = labelled(name, label) if label else name
        _check(key, Kind.GAUGE)
        with self._lock:
            self._gauges[key] = value

    def observe(self, name: str, values_s: npt.ArrayLike, counts: npt.ArrayLike | None = None) -> None:
        """Enter durations in seconds, each once or ``counts`` times."""
        _check(name, Kind.HISTOGRAM)
        with self._lock:
            self._histograms.setdefault(name, Histogram()).observe(values_s, counts)

    def measures(self) -> RoleMeasures:
        """Return what was measured so far; it does not change any more."""
        with self._lock:
            histograms = {name: each.copy() for name, each in self._histograms.items()}
            return RoleMeasures(
                self.role,
                self.number,
                self.incarnation,
                self.host,
                dict(self._counters),
                dict(self._gauges),
                histograms,
            )


@functools.cache
def _check(key: str, kind: Kind) -> None:
    """Refuse what nobody would ever see: a slip of the pen in a role."""
    metric, value = metric_of(key)
    if metric is None or metric.kind is not kind or bool(metric.label) != bool(value):
        raise ValueError(f"{key!r} is no {kind.value} of ps2stream.metrics.names")
