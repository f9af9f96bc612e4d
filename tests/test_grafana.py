"""The dashboard is one that Grafana takes, and asks for nothing that no role measures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ps2stream.metrics.names import METRICS, Kind

ROOT = Path(__file__).parent.parent
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "ps2stream.json").read_text("utf-8"))
PAGE = (ROOT / "docs" / "observability.md").read_text("utf-8")
_NAME = re.compile(r"ps2stream_[a-z_]+")
#: A row of the table of metrics: name, kind, who measures it, meaning.
_ROW = re.compile(r"^\| `(ps2stream_[a-z_]+)` \| (\w+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def exposed() -> set[str]:
    """Name all series that Prometheus can have."""
    names = set()
    for metric in METRICS:
        endings = ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM else ("",)
        names |= {f"{metric.exposed}{ending}" for ending in endings}
    return names


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def test_every_metric_of_the_dashboard_exists() -> None:
    used = {name for expression in expressions() for name in _NAME.findall(expression)}
    assert used - exposed() == set()
    assert len(used) > 20


def test_it_shows_every_metric_there_is() -> None:
    used = "\n".join(expressions())
    assert [metric.exposed for metric in METRICS if metric.exposed not in used] == []


def test_brackets_are_closed() -> None:
    for expression in expressions():
        for opening, closing in ("()", "[]", "{}"):
            assert expression.count(opening) == expression.count(closing), expression


def test_panels_ask_the_data_source_that_is_chosen() -> None:
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
    assert {variable["name"] for variable in DASHBOARD["templating"]["list"]} == {"datasource", "instance"}


def test_panels_have_numbers_of_their_own_and_do_not_overlap() -> None:
    everything = DASHBOARD["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    taken: set[tuple[int, int]] = set()
    for panel in everything:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_it_is_of_a_schema_that_grafana_10_reads() -> None:
    assert DASHBOARD["schemaVersion"] >= 36
    assert DASHBOARD["title"]
    assert DASHBOARD["uid"]


def test_the_table_of_the_documentation_is_the_list_in_the_code() -> None:
    assert [(name, kind, roles, meaning) for name, kind, roles, meaning in _ROW.findall(PAGE)] == [
        (metric.exposed, metric.kind.value, metric.roles, metric.meaning) for metric in METRICS
    ]
