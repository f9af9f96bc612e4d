"""What Prometheus' own parser reads from the text is what is on the board."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from ps2stream.metrics.board import Board
from ps2stream.metrics.exposition import text_of
from ps2stream.metrics.measures import BOUNDS_S
from ps2stream.metrics.names import BY_NAME, METRICS, Kind
from ps2stream.metrics.recorder import Recorder

Labels = tuple[tuple[str, str], ...]


def parsed(board: Board) -> dict[tuple[str, Labels], float]:
    families = text_string_to_metric_families(text_of(board))
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def full_recorder() -> Recorder:
    """Return one that has something of every metric that a role can tell."""
    recorder = Recorder("worker", 3, 1, "host-2")
    for metric in METRICS:
        match metric.kind:
            case Kind.COUNTER:
                recorder.count(metric.name, 2)
            case Kind.GAUGE if metric.name != "age_seconds":
                recorder.set(metric.name, 7, "alerts.updates" if metric.label else "")
            case Kind.HISTOGRAM:
                recorder.observe(metric.name, [0.001, 0.002, 3600.0])
            case _:
                pass
    return recorder


def test_every_metric_is_exposed_under_its_name_with_role_and_number() -> None:
    board = Board("realtime")
    board.post(full_recorder().measures())
    families = list(text_string_to_metric_families(text_of(board)))
    names = {sample.name for family in families for sample in family.samples}
    for metric in METRICS:
        endings = ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM else ("",)
        assert {f"{metric.exposed}{ending}" for ending in endings} <= names
    for family in families:
        assert family.documentation
        for sample in family.samples:
            assert (sample.labels["role"], sample.labels["number"]) == ("worker", "3")


def test_values_come_back_as_they_were() -> None:
    board = Board("realtime")
    board.post(full_recorder().measures())
    found = parsed(board)
    role = (("number", "3"), ("role", "worker"))
    assert found["ps2stream_candidates_total", role] == 2
    assert found["ps2stream_restarts_total", role] == 2
    assert found["ps2stream_position", role] == 7
    assert found["ps2stream_lag_events", (*role, ("topic", "alerts.updates"))] == 7
    assert found["ps2stream_role_info", (("engine", "realtime"), ("host", "host-2"), *role)] == 1


def test_buckets_are_cumulative_and_end_with_the_count() -> None:
    board = Board()
    board.post(full_recorder().measures())
    (family,) = (
        each
        for each in text_string_to_metric_families(text_of(board))
        if each.name == "ps2stream_commit_seconds"
    )
    buckets = {each.labels["le"]: each.value for each in family.samples if each.name.endswith("_bucket")}
    assert [float(bound) for bound in buckets] == [*BOUNDS_S, float("inf")]
    assert list(buckets.values()) == [sum(v <= bound for v in (0.001, 0.002)) for bound in BOUNDS_S] + [3]
    totals = {each.name.rpartition("_")[2]: each.value for each in family.samples[-2:]}
    assert totals == {"count": 3, "sum": 3600.003}


def test_what_nobody_measures_is_not_there() -> None:
    assert text_of(Board()) == ""
    board = Board()
    recorder = Recorder("registrar", 0)
    recorder.count("updates")
    board.post(recorder.measures())
    text = text_of(board)
    assert "ps2stream_updates_total" in text
    assert "ps2stream_publications" not in text
    assert "python_info" not in text  # of this process, which is not what is asked for


def test_help_is_what_the_list_says() -> None:
    board = Board()
    board.post(full_recorder().measures())
    assert f"# HELP ps2stream_horizon {BY_NAME['horizon'].meaning}" in text_of(board)
