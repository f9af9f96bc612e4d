from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.model.records import (
    BadRecordError,
    Origin,
    demands_of,
    objects_in,
    publication_row,
    subscription_row,
)

SQUARE = [[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]]


def _feature(geometry: Any, **more: Any) -> dict[str, Any]:
    return {"type": "Feature", "geometry": geometry, **more}


def _area(ring: Any, **more: Any) -> dict[str, Any]:
    properties = {"expression": "rain"}
    return _feature({"type": "Polygon", "coordinates": [ring]}, id="q", properties=properties, **more)


def test_a_publication_is_read_from_a_plain_object() -> None:
    row = publication_row({"id": "p", "lat": 1, "lon": 2.5, "text": "hi", "more": [1]})
    assert row == {"id": "p", "lat": 1.0, "lon": 2.5, "text": "hi"}


def test_a_missing_field_is_left_to_the_rules() -> None:
    assert publication_row({}) == {"id": None, "lat": None, "lon": None, "text": None}


def test_a_point_is_longitude_then_latitude_and_perhaps_altitude() -> None:
    point = {"type": "Point", "coordinates": [11.5, 48.1, 520]}
    row = publication_row(_feature(point, id=7, properties={"text": "hi", "id": "other"}))
    assert row == {"id": "7", "lat": 48.1, "lon": 11.5, "text": "hi"}


def test_an_id_may_stand_among_the_properties() -> None:
    point = {"type": "Point", "coordinates": [11.5, 48.1]}
    assert publication_row(_feature(point, properties={"id": 12}))["id"] == "12"
    assert publication_row(_feature(point, properties=None))["id"] is None


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ([1], "a publication must be a JSON object; got a list"),
        (None, "a publication must be a JSON object; got nothing"),
        ({"lat": "1"}, "lat must be a number; got the string '1'"),
        ({"lat": True}, "lat must be a number; got true"),
        ({"lon": 10**400}, "lon must be a number of degrees; got one of 401 digits"),
        ({"text": 5}, "text must be a string; got the number 5"),
        ({"text": "\ud800"}, "text must be Unicode; got half of a surrogate pair"),
        ({"id": "\udfff"}, "id must be Unicode; got half of a surrogate pair"),
        ({"id": {}}, "id must be a string; got an object"),
        ({"lat": (1, 2)}, "lat must be a number; got a value of the type tuple"),
        (_feature(None), "geometry must be a Point; got nothing"),
        (_feature({"type": "LineString"}), "geometry must be a Point; got LineString"),
        (_feature({"type": "Point"}), "coordinates of a Point must be a list; got nothing"),
        (_feature({"type": "Point", "coordinates": [1]}), r"a Point needs \[lon, lat\]; got \[1\]"),
        (_feature(None, properties=3), "properties of a Feature must be an object; got the number 3"),
    ],
)
def test_a_bad_publication_is_told_what_was_needed_and_what_came(record: object, message: str) -> None:
    with pytest.raises(BadRecordError, match=f"^{message}$"):
        publication_row(record)


@pytest.mark.parametrize(
    "record",
    [
        {"id": "q", "expression": "rain", "region": [0, 0, 2, 1]},
        {"id": "q", "expression": "rain", "region": [0, 0, -9, 2, 1, 9]},
        {"id": "q", "expression": "rain", "min_lon": 0, "min_lat": 0, "max_lon": 2, "max_lat": 1},
        _area(SQUARE),
        _area(SQUARE[::-1]),
        _area([*SQUARE[2:4], *SQUARE[:3]]),
        _area([[*position, 7] for position in SQUARE], bbox=[9, 9, 9, 9]),
        _feature(None, id="q", bbox=[0, 0, 2, 1], properties={"expression": "rain"}),
    ],
)
def test_a_subscription_is_read_from_all_its_forms(record: object) -> None:
    corners = {"min_lon": 0.0, "min_lat": 0.0, "max_lon": 2.0, "max_lat": 1.0}
    assert subscription_row(record) == {"id": "q", "expression": "rain", **corners}


@pytest.mark.parametrize(
    "ring",
    [
        [[0, 0], [2, 0], [1, 1], [0, 1], [0, 0]],  # slanted
        [[0, 0], [2, 1], [2, 0], [0, 1], [0, 0]],  # a bow tie
        [[0, 0], [2, 0], [2, 1], [0, 0]],  # a triangle
        [[0, 0], [2, 0], [2, 1], [0, 1], [0, 1]],  # not closed
        [[0, 0], [2, 0], [0, 0], [2, 0], [0, 0]][:4],
        [[0, 0], [1, 0], [2, 0], [2, 1], [0, 1], [0, 0]],  # a corner too many
        [[0, 0], [2, 0], [2, 1], [2, 0], [0, 0]],  # two sides of it
    ],
)
def test_a_polygon_that_is_no_rectangle_is_refused_and_its_bbox_not_taken(ring: Any) -> None:
    with pytest.raises(BadRecordError, match="must be one rectangle"):
        subscription_row(_area(ring, bbox=[0, 0, 2, 1]))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"region": [1, 2]}, "region must be .*; got 2 values"),
        ({"region": "1,2,3,4"}, "region must be .*; got the string '1,2,3,4'"),
        ({"region": [1, 2, 3, "x"]}, "max_lat must be a number; got the string 'x'"),
        (_feature(None), "a Feature needs a Polygon that is a rectangle, or a bbox and no geometry"),
        (_feature({"type": "Polygon", "coordinates": [SQUARE, SQUARE]}), ".*; got 2 rings"),
        (_area([["a", 0], [2, 0], [2, 1], [0, 1], ["a", 0]]), "lon must be a number; got the string 'a'"),
    ],
)
def test_a_bad_subscription_is_told_what_was_needed_and_what_came(record: object, message: str) -> None:
    with pytest.raises(BadRecordError, match=f"^{message}$"):
        subscription_row(record)


def test_a_collection_stands_for_its_features() -> None:
    document = json.dumps({"type": "FeatureCollection", "features": [1, 2]}).encode()
    assert list(objects_in(document, 3)) == [(Origin(3, 1), 1), (Origin(3, 2), 2)]
    assert [str(origin) for origin, _ in objects_in(document, 3)] == [
        "line 3, feature 1",
        "line 3, feature 2",
    ]
    assert str(Origin(None, 2)) == "feature 2"


def test_marks_before_a_text_are_skipped() -> None:
    assert list(objects_in(b"\x1e{}", 1)) == list(objects_in("\ufeff{}".encode(), 1)) == [(Origin(1), {})]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"{", "must be JSON; Expecting property name .* at column 2"),
        (b'{"a":\n 1,}', "must be JSON; .* at line 2, column"),
        (b"\xff", "must be UTF-8; byte 1 is not"),
        (b"[" * 100_000, "must be JSON of few levels; it nests too deeply"),
        (b"1" * 5_000, "^must be JSON with numbers of few digits; one has thousands$"),
        (b'{"type": "FeatureCollection"}', "features of a FeatureCollection must be a list; got nothing"),
    ],
)
def test_what_is_no_json_is_told_where(document: bytes, message: str) -> None:
    with pytest.raises(BadRecordError, match=message):
        list(objects_in(document, 1))


_names = st.sampled_from(["type", "id", "lat", "geometry", "properties", "coordinates", "bbox", "region"])
_json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3),
    lambda values: st.lists(values, max_size=6) | st.dictionaries(_names, values, max_size=4),
    max_leaves=12,
)


@given(_json)
def test_any_json_is_a_row_or_a_bad_record(value: object) -> None:
    for read in (publication_row, subscription_row):
        for wrapped in (value, {"type": "Feature", "geometry": value, "bbox": value, "properties": value}):
            try:
                row = read(wrapped)
            except BadRecordError:
                continue
            assert all(field is None or isinstance(field, str | float) for field in row.values())


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"text": "tea"}, {"after": None, "as_of": None}),
        ({"after": 7}, {"after": 7, "as_of": None}),
        ({"after": None, "as_of": -3}, {"after": None, "as_of": -3}),
        ({"type": "Feature", "properties": {"as_of": 9}, "after": 1}, {"after": None, "as_of": 9}),
    ],
)
def test_a_publication_says_where_in_the_order_it_wants_to_be(record: object, expected: object) -> None:
    assert demands_of(record) == expected


@pytest.mark.parametrize("value", ["7", 7.0, True, [7], 1 << 63, -(1 << 63) - 1])
@pytest.mark.parametrize("name", ["after", "as_of"])
def test_what_is_no_seq_is_no_demand(name: str, value: object) -> None:
    with pytest.raises(BadRecordError, match=f"{name} must be a seq, a whole number"):
        demands_of({name: value})
