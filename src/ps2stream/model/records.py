"""From JSON to records: publications and subscriptions as plain objects or as GeoJSON Features.

Only what JSON can get wrong is looked for here: not JSON at all, a string where a number must be, a
geometry of another kind. Whether the values make sense is decided by the rules of ``model.events``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any, NamedTuple

Row = dict[str, Any]
Object = Mapping[str, Any]

CORNERS = ("min_lon", "min_lat", "max_lon", "max_lat")


class BadRecordError(Exception):
    """Say what a record needed and what came; it is rejected and the others go on."""


class Origin(NamedTuple):
    """Where a record stands in the input."""

    line: int | None
    feature: int | None = None

    def __str__(self) -> str:
        parts = (("line", self.line), ("feature", self.feature))
        return ", ".join(f"{name} {number}" for name, number in parts if number is not None)


def objects_in(document: bytes, line: int | None) -> Iterator[tuple[Origin, object]]:
    """Decode one JSON text; a FeatureCollection stands for its features."""
    return features_in(_decode(document), line)


def features_in(value: object, line: int | None) -> Iterator[tuple[Origin, object]]:
    """Return the features of a FeatureCollection; anything else stands for itself."""
    if isinstance(value, dict) and value.get("type") == "FeatureCollection":
        features = value.get("features")
        if not isinstance(features, list):
            raise BadRecordError(f"features of a FeatureCollection must be a list; got {_kind(features)}")
        for number, feature in enumerate(features, 1):
            yield Origin(line, number), feature
    else:
        yield Origin(line), value


def publication_row(value: object) -> Row:
    """Read ``{"id", "lat", "lon", "text"}`` or a Feature with a Point; a missing field is None."""
    record = _object(value, "publication")
    if record.get("type") != "Feature":
        lat, lon = _number(record.get("lat"), "lat"), _number(record.get("lon"), "lon")
        return {"id": _id(record), "lat": lat, "lon": lon, "text": _text(record.get("text"), "text")}
    properties = _properties(record)
    coordinates = _coordinates(record, "Point")
    if len(coordinates) < 2:
        raise BadRecordError(f"a Point needs [lon, lat]; got {coordinates}")
    lon, lat = _number(coordinates[0], "lon"), _number(coordinates[1], "lat")
    text = _text(properties.get("text"), "properties.text")
    return {"id": _id(record, properties), "lat": lat, "lon": lon, "text": text}


def demands_of(value: object) -> Row:
    """Read where in the order a publication wants to be: ``after`` a seq, ``as_of`` one, or anywhere."""
    record = _object(value, "publication")
    holder = _properties(record) if record.get("type") == "Feature" else record
    return {name: _seq(holder.get(name), name) for name in ("after", "as_of")}


def subscription_row(value: object) -> Row:
    """Read ``{"id", "expression", "region"}`` or a Feature with a rectangle; a missing field is None."""
    record = _object(value, "subscription")
    if record.get("type") == "Feature":
        properties = _properties(record)
        row = {"id": _id(record, properties), "expression": _text(properties.get("expression"), "expression")}
        corners = _feature_corners(record)
    else:
        row = {"id": _id(record), "expression": _text(record.get("expression"), "expression")}
        if "region" in record:
            corners = _box(record["region"], "region")
        else:
            corners = [record.get(name) for name in CORNERS]
    values = [_number(corner, name) for corner, name in zip(corners, CORNERS, strict=True)]
    return {**row, **dict(zip(CORNERS, values, strict=True))}


def unsubscription_row(value: object) -> Row:
    """Read the id of a subscription."""
    return {"id": _text(value, "id")}


def _decode(document: bytes) -> object:
    try:
        # A byte order mark begins some files, a record separator each text of a GeoJSON sequence.
        return json.loads(document.decode("utf-8").lstrip("\ufeff\x1e"))
    except UnicodeDecodeError as error:
        raise BadRecordError(f"must be UTF-8; byte {error.start + 1} is not") from None
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise BadRecordError(f"must be JSON; {error.msg} at {where}") from None
    except RecursionError:
        raise BadRecordError("must be JSON of few levels; it nests too deeply") from None
    except ValueError:
        raise BadRecordError("must be JSON with numbers of few digits; one has thousands") from None


def _object(value: object, noun: str) -> Object:
    if not isinstance(value, dict):
        raise BadRecordError(f"a {noun} must be a JSON object; got {_kind(value)}")
    return value


def _properties(feature: Object) -> Object:
    properties = feature.get("properties")
    if properties is None:
        return {}
    if not isinstance(properties, dict):
        raise BadRecordError(f"properties of a Feature must be an object; got {_kind(properties)}")
    return properties


def _coordinates(feature: Object, kind: str) -> list[Any]:
    geometry = feature.get("geometry")
    found = geometry.get("type") if isinstance(geometry, dict) else None
    if not isinstance(geometry, dict) or found != kind:
        raise BadRecordError(f"geometry must be a {kind}; got {_kind(geometry) if found is None else found}")
    coordinates = geometry.get("coordinates")
    if not isinstance(coordinates, list):
        raise BadRecordError(f"coordinates of a {kind} must be a list; got {_kind(coordinates)}")
    return coordinates


def _feature_corners(feature: Object) -> list[Any]:
    if feature.get("geometry") is not None:
        # Its bbox is not asked: around a polygon that is no rectangle it would be another region.
        return _rectangle(_coordinates(feature, "Polygon"))
    if feature.get("bbox") is None:
        raise BadRecordError("a Feature needs a Polygon that is a rectangle, or a bbox and no geometry")
    return _box(feature["bbox"], "bbox")


def _rectangle(rings: list[Any]) -> list[float]:
    """Return the corners of a polygon whose sides follow meridians and parallels."""
    need = "the Polygon must be one rectangle along meridians and parallels (or give a bbox and no geometry)"
    if len(rings) != 1 or not isinstance(rings[0], list):
        raise BadRecordError(f"{need}; got {len(rings)} rings")
    ring = rings[0]
    if len(ring) != 5 or not all(isinstance(position, list) and len(position) >= 2 for position in ring):
        raise BadRecordError(f"{need}; got a ring of {len(ring)} positions")
    corners = [(_degrees(position[0], "lon"), _degrees(position[1], "lat")) for position in ring]
    lons, lats = zip(*corners, strict=True)
    box = [min(lons), min(lats), max(lons), max(lats)]
    straight = all(a[0] == b[0] or a[1] == b[1] for a, b in itertools.pairwise(corners))
    if (
        corners[0] != corners[-1]
        or not straight
        or set(corners) != set(itertools.product(box[::2], box[1::2]))
    ):
        raise BadRecordError(f"{need}; got {corners}")
    return box


def _box(value: object, name: str) -> list[Any]:
    """Return the four corners of a bounding box; one with altitudes has six numbers."""
    if not isinstance(value, list | tuple) or len(value) not in (4, 6):
        came = f"{len(value)} values" if isinstance(value, list | tuple) else _kind(value)
        raise BadRecordError(f"{name} must be [min_lon, min_lat, max_lon, max_lat]; got {came}")
    return list(value) if len(value) == 4 else [*value[0:2], *value[3:5]]


def _id(record: Object, properties: Object | None = None) -> str | None:
    value = record.get("id")
    if value is None and properties is not None:
        value = properties.get("id")
    # A string first, the usual case: to ask for an abstract class takes ten times as long.
    if not isinstance(value, (str, bool)) and isinstance(value, Real):
        return str(value)
    return _text(value, "id")


def _text(value: object, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadRecordError(f"{name} must be a string; got {_kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRecordError(f"{name} must be Unicode; got half of a surrogate pair") from None
    return value


def _number(value: object, name: str) -> float | None:
    if value is None or type(value) is float:
        return value
    # Python calls also bring numbers of numpy, which are no int or float.
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BadRecordError(f"{name} must be a number; got {_kind(value)}")
    try:
        return float(value)
    except OverflowError:
        raise BadRecordError(
            f"{name} must be a number of degrees; got one of {len(str(value))} digits"
        ) from None


def _seq(value: object, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise BadRecordError(f"{name} must be a seq, a whole number; got {_kind(value)}")
    return value


def _degrees(value: object, name: str) -> float:
    number = _number(value, name)
    if number is None:
        raise BadRecordError(f"{name} of a position is missing")
    return number


def _kind(value: object) -> str:
    """Name what came, short enough for a message."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {str(value)[:20]}"
        case str():
            return f"the string {value[:20]!r}"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a value of the type {type(value).__name__}"
