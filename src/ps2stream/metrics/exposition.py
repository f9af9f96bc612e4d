"""A board as Prometheus reads it; the only module beside ``endpoint`` that imports its client."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from ps2stream.metrics import names
from ps2stream.metrics.board import Board, Standing
from ps2stream.metrics.measures import BOUNDS_S, Histogram
from ps2stream.metrics.names import Kind

_ROLE = ("role", "number")
_BOUNDS = (*(f"{bound:g}" for bound in BOUNDS_S), "+Inf")


class BoardCollector(Collector):
    """Give all metrics of a board, as it is when somebody asks.

    A host is no label of a count: a worker that has moved would begin another series. ``role_info`` has it.
    """

    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterator[Metric]:
        standings = self._board.standings()
        for metric in names.METRICS:
            match metric.kind:
                case Kind.COUNTER:
                    family = _counter(metric, standings)
                case Kind.GAUGE:
                    family = _gauge(metric, standings)
                case Kind.HISTOGRAM:
                    family = _histogram(metric, standings)
                case Kind.INFO:
                    family = self._info(metric, standings)
            if family.samples:
                yield family

    def _info(self, metric: names.Metric, standings: list[Standing]) -> Metric:
        family = InfoMetricFamily(_family(metric), metric.meaning, labels=(*_ROLE, "host", "engine"))
        for each in standings:
            family.add_metric((*_labels(each), each.newest.host, self._board.engine), {})
        return family


def registry_of(board: Board) -> CollectorRegistry:
    """Return a registry of this board alone, without what the client measures of this process."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(BoardCollector(board))
    return registry


def text_of(board: Board) -> str:
    """Return all metrics in Prometheus' text format."""
    return generate_latest(registry_of(board)).decode()


def _counter(metric: names.Metric, standings: list[Standing]) -> Metric:
    family = CounterMetricFamily(_family(metric), metric.meaning, labels=_ROLE)
    for each in standings:
        if metric.name in each.total.counters:
            family.add_metric(_labels(each), each.total.counters[metric.name])
    return family


def _gauge(metric: names.Metric, standings: list[Standing]) -> Metric:
    more = (metric.label,) if metric.label else ()
    family = GaugeMetricFamily(_family(metric), metric.meaning, labels=(*_ROLE, *more))
    for each in standings:
        for key, value in each.gauges.items():
            named, label = names.metric_of(key)
            if named is metric:
                family.add_metric((*_labels(each), *([label] if more else [])), value)
    return family


def _histogram(metric: names.Metric, standings: list[Standing]) -> Metric:
    family = HistogramMetricFamily(_family(metric), metric.meaning, labels=_ROLE)
    for each in standings:
        if metric.name in each.total.histograms:
            histogram = each.total.histograms[metric.name]
            family.add_metric(_labels(each), _buckets(histogram), histogram.sum_s)
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Return how many values are at most each bound."""
    return list(zip(_BOUNDS, np.cumsum(histogram.counts).tolist(), strict=True))


def _family(metric: names.Metric) -> str:
    """Return the name without the ending that the client adds by the kind."""
    return f"{names.PREFIX}_{metric.name}"


def _labels(standing: Standing) -> tuple[str, str]:
    return standing.newest.role, str(standing.newest.number)
