"""Records of a Python call: checked as on the command line, and all or none unless asked otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ps2stream as ps2
from ps2stream.deployment import submission
from ps2stream.journal import Journal

REGION = [11.3, 48.0, 11.8, 48.3]
FEATURE = {
    "type": "Feature",
    "id": 7,
    "geometry": {"type": "Point", "coordinates": [11.5, 48.1]},
    "properties": {"text": "fire"},
}


@pytest.fixture
def deployment(tmp_path: Path) -> ps2.Deployment:
    return ps2.Deployment(tmp_path / "home")


def _n_events(deployment: ps2.Deployment) -> int:
    with Journal.open(deployment.home.journal) as journal:
        return journal.last().seq


def test_mappings_are_read_as_the_command_line_reads_them(deployment: ps2.Deployment) -> None:
    both = {"type": "FeatureCollection", "features": [FEATURE, {**FEATURE, "id": "b"}]}
    assert deployment.publish(FEATURE).ids == ("7",)
    assert deployment.publish([both, ps2.Publication("c", "x", lat=0, lon=0)]).ids == ("7", "b", "c")
    assert deployment.subscribe({"id": "s", "expression": "a", "region": REGION}).seqs == (5,)


def test_numbers_of_numpy_tuples_and_regions_are_taken_as_what_they_are(deployment: ps2.Deployment) -> None:
    columns = {"lat": np.float32(48.25), "lon": np.int64(11), "text": "fire"}
    value = ps2.Publication("b", "fire", lat=np.float32(48.25), lon=np.float32(11.5))  # type: ignore[arg-type]
    assert deployment.publish([{"id": np.int64(7), **columns}, value]).ids == ("7", "b")
    region = ps2.Region(*REGION)
    for given in (tuple(REGION), region):
        deployment.subscribe({"id": "s", "expression": "a", "region": given})
        (row,) = deployment.subscriptions("s").to_pylist()
        assert ps2.Region(row["min_lon"], row["min_lat"], row["max_lon"], row["max_lat"]) == region


def test_a_publication_without_an_id_gets_one(deployment: ps2.Deployment) -> None:
    receipt = deployment.publish([{"lat": 1, "lon": 2, "text": "a"}, {"lat": 1, "lon": 2, "text": "b"}])
    assert len(set(receipt.ids)) == 2
    assert deployment.explain(receipt.ids[1], ps2.Subscription("s", "b", ps2.Region(0, 0, 3, 3))).matches


def test_one_bad_record_keeps_all_of_its_call_out(deployment: ps2.Deployment) -> None:
    deployment.publish(FEATURE)
    far = {"id": "far", "lat": 91, "lon": 0, "text": "x"}
    records: list[Any] = [FEATURE, far, "no record", {**far, "id": "t", "lat": "1"}]
    with pytest.raises(ps2.RejectedError) as caught:
        deployment.publish(records)
    assert str(caught.value) == (
        "3 of 4 events rejected: row 1: publish 'far': lat must lie in [-90, 90]; got 91.0; "
        "row 2: publish 'no record': a publication must be a JSON object; got the string 'no record'; "
        "row 3: publish 't': lat must be a number; got the string '1'"
    )
    assert [(each.row, each.op, each.id) for each in caught.value.rejected] == [
        (1, "publish", "far"),
        (2, "publish", "no record"),
        (3, "publish", "t"),
    ]
    assert _n_events(deployment) == 1


def test_the_others_go_on_where_rejected_ones_are_skipped(deployment: ps2.Deployment) -> None:
    region = {"region": REGION}
    receipt = deployment.subscribe(
        [
            {"id": "a", "expression": "fire", **region},
            {"id": "b", "expression": "fire AND", **region},
            {"type": "FeatureCollection"},
            {"id": "c", "expression": "rain", **region},
        ],
        on_rejected="skip",
    )
    assert (receipt.ids, receipt.seqs) == (("a", "c"), (1, 2))
    assert [each.row for each in receipt.rejected] == [1, 2]
    assert "features of a FeatureCollection must be a list" in receipt.rejected[1].reason
    assert deployment.subscriptions().column("id").to_pylist() == ["a", "c"]


def test_long_calls_come_in_parts_and_are_still_all_or_none(
    deployment: ps2.Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "MAX_LINES", 2)
    good = [ps2.Publication(str(number), "x", lat=0, lon=0) for number in range(5)]
    assert deployment.publish(good).seqs == (1, 2, 3, 4, 5)
    with pytest.raises(ps2.RejectedError, match="1 of 6 events rejected: row 5: "):
        deployment.publish([*good, {"id": ""}])
    assert _n_events(deployment) == 5


def test_nothing_given_is_nothing_done(deployment: ps2.Deployment) -> None:
    assert deployment.publish([]) == ps2.Receipt((), ())
    assert not deployment.home.directory.exists()


@pytest.mark.parametrize("call", ["publish", "subscribe", "unsubscribe"])
def test_a_mistyped_choice_is_an_error(deployment: ps2.Deployment, call: str) -> None:
    method: Any = getattr(deployment, call)
    with pytest.raises(ps2.ConfigError, match="on_rejected must be one of raise, skip; got 'ignore'"):
        method([], on_rejected="ignore")


def test_an_id_to_end_must_be_a_string(deployment: ps2.Deployment) -> None:
    deployment.publish(FEATURE)
    numbers: Any = [7]
    with pytest.raises(ps2.RejectedError, match="id must be a string; got the number 7"):
        deployment.unsubscribe(numbers)
