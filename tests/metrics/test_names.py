"""The list of metrics is one that Prometheus takes."""

from __future__ import annotations

import re

import pytest

from ps2stream.metrics.names import METRICS, Kind, Metric, labelled, metric_of


def test_no_name_is_there_twice() -> None:
    assert len({metric.exposed for metric in METRICS}) == len({metric.name for metric in METRICS})
    assert len({metric.name for metric in METRICS}) == len(METRICS)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_has_a_plain_name_and_a_sentence(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", metric.name)
    assert metric.meaning.endswith(".")
    assert not metric.name.endswith(("_total", "_info", "_count", "_sum", "_bucket"))
    if metric.kind is Kind.HISTOGRAM:
        assert metric.name.endswith("_seconds")


def test_a_key_tells_its_metric_and_its_label() -> None:
    metric, topic = metric_of(labelled("lag_events", "alerts.updates"))
    assert metric is not None
    assert (metric.name, metric.label, topic) == ("lag_events", "topic", "alerts.updates")
    assert metric_of("publications")[0] is METRICS[0]
    assert metric_of("nothing of ours") == (None, "")
