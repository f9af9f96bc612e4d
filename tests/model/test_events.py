"""The border lets valid events through and gives every other one its reason."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.errors import SchemaError
from ps2stream.model.events import (
    check_publications,
    check_updates,
    conform,
    in_order,
    not_late,
    rejected_records,
    rejection,
    split,
)
from ps2stream.model.limits import shortened
from ps2stream.model.schemas import EVENTS, PUBLICATIONS, REJECTED, UPDATES

PUBLISHED = {"seq": 1, "op": "publish", "id": "p", "lat": 1.0, "lon": 2.0, "text": "fire"}
SUBSCRIBED = {
    "seq": 1,
    "op": "subscribe",
    "id": "s",
    "expression": "fire",
    "min_lon": -1.0,
    "min_lat": -2.0,
    "max_lon": 3.0,
    "max_lat": 4.0,
}
UNSUBSCRIBED = {"seq": 1, "op": "unsubscribe", "id": "s"}

Row = dict[str, Any]


def events(*rows: Row) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), EVENTS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": None}, "id must be a non-empty string"),
        ({"id": ""}, "id must be a non-empty string"),
        ({"lat": None}, "lat is missing"),
        ({"lon": None}, "lon is missing"),
        ({"lat": 90.5}, "lat must lie in [-90, 90]; got 90.5"),
        ({"lat": math.nan}, "lat must lie in [-90, 90]; got nan"),
        ({"lon": -180.001}, "lon must lie in [-180, 180]; got -180.001"),
        ({"lon": math.inf}, "lon must lie in [-180, 180]; got inf"),
        ({"text": None}, "text is missing"),
    ],
)
def test_a_bad_publication_is_rejected_with_its_reason_and_the_others_go_on(change: Row, reason: str) -> None:
    batch = events({**PUBLISHED, "seq": 1}, {**PUBLISHED, "seq": 2, **change}, {**PUBLISHED, "seq": 3})
    valid, rejected = check_publications(split(batch)[0])
    assert valid.seq.tolist() == [1, 3]
    assert valid.lon.tolist() == [2.0, 2.0]
    assert valid.lat.tolist() == [1.0, 1.0]
    assert valid.texts.to_pylist() == ["fire", "fire"]
    name = {**PUBLISHED, **change}["id"]
    assert rejected.to_pylist() == [{"seq": 2, "op": "publish", "id": name, "reason": reason}]


ID_TOO_LONG = "id must have at most 1,024 bytes; got 1,025"


@pytest.mark.parametrize(
    ("row", "change", "reason"),
    [
        (PUBLISHED, {"id": "i" * 1_025}, ID_TOO_LONG),
        (PUBLISHED, {"id": "\u00fc" * 512 + "i"}, ID_TOO_LONG),
        (PUBLISHED, {"text": "\u00fc" * 32_769}, "text must have at most 65,536 bytes; got 65,538"),
        (PUBLISHED, {"id": "", "text": "x" * 65_537}, "id must be a non-empty string"),
        (SUBSCRIBED, {"id": "i" * 1_025}, ID_TOO_LONG),
        (SUBSCRIBED, {"expression": "x" * 16_385}, "expression must have at most 16,384 bytes; got 16,385"),
        (UNSUBSCRIBED, {"id": "i" * 1_025}, ID_TOO_LONG),
    ],
)
def test_what_is_too_long_is_rejected_and_the_longest_is_not(row: Row, change: Row, reason: str) -> None:
    longest = {"id": "\u00fc" * 512, "text": "x" * 65_536, "expression": "\uac00" * 5_461 + "."}
    batch = events({**row, **longest, "seq": 1}, {**row, "seq": 2, **change}, {**row, "seq": 3})
    publications, updates = split(batch)
    valid, rejected = check_publications(publications) if publications.num_rows else check_updates(updates)
    assert valid.seq.tolist() == [1, 3]
    assert valid.ids.to_pylist() == [longest["id"], row["id"]]
    name = {**row, **change}["id"]
    shown = name if len(name.encode()) <= 1_024 else name[:60] + "\u2026"
    assert rejected.to_pylist() == [{"seq": 2, "op": row["op"], "id": shown, "reason": reason}]


@given(
    st.lists(st.one_of(st.none(), st.tuples(st.text(max_size=3), st.sampled_from([1, 60, 341, 512, 1_025]))))
)
@settings(max_examples=50, deadline=None)
def test_a_rejected_record_shows_ids_and_operations_as_the_oracle_does(
    drawn: list[tuple[str, int] | None],
) -> None:
    strings = [None if each is None else each[0] * each[1] for each in drawn]
    batch = events(*({"seq": 1, "op": each, "id": each} for each in strings))
    rejected = rejection(batch, dict.fromkeys(range(len(strings)), "why"))
    expected = [None if each is None else shortened(each) for each in strings]
    assert rejected.column("id").to_pylist() == rejected.column("op").to_pylist() == expected


def test_the_reason_quotes_the_beginning_of_an_operation_only() -> None:
    _, rejected = check_updates(split(events({**SUBSCRIBED, "op": "o" * 5_000}))[1])
    (row,) = rejected.to_pylist()
    assert row["op"] == "o" * 60 + "\u2026"
    assert row["reason"] == f"op must be one of publish, subscribe, unsubscribe; got '{'o' * 60}'\u2026"


def test_what_an_unsubscribe_has_no_use_for_goes_no_further() -> None:
    batch = events({**UNSUBSCRIBED, "expression": "x" * 16_385}, {**SUBSCRIBED, "seq": 2})
    valid, rejected = check_updates(split(batch)[1])
    assert rejected.num_rows == 0
    assert valid.expressions.to_pylist() == [None, "fire"]


@pytest.mark.parametrize(
    ("row", "change", "reason"),
    [
        (SUBSCRIBED, {"op": None}, "op must be one of publish, subscribe, unsubscribe; got None"),
        (
            SUBSCRIBED,
            {"op": "Subscribe"},
            "op must be one of publish, subscribe, unsubscribe; got 'Subscribe'",
        ),
        (SUBSCRIBED, {"id": None}, "id must be a non-empty string"),
        (SUBSCRIBED, {"id": ""}, "id must be a non-empty string"),
        (SUBSCRIBED, {"expression": None}, "expression is missing"),
        (SUBSCRIBED, {"min_lon": None}, "min_lon of the region is missing"),
        (SUBSCRIBED, {"max_lat": math.nan}, "max_lat of the region must lie in [-90, 90]; got nan"),
        (SUBSCRIBED, {"max_lon": 180.5}, "max_lon of the region must lie in [-180, 180]; got 180.5"),
        (SUBSCRIBED, {"min_lat": 5.0}, "the region must have min_lat <= max_lat; got 5.0 > 4.0"),
        (UNSUBSCRIBED, {"id": ""}, "id must be a non-empty string"),
        (UNSUBSCRIBED, {"op": "delete"}, "op must be one of publish, subscribe, unsubscribe; got 'delete'"),
    ],
)
def test_a_bad_update_is_rejected_with_its_reason_and_the_others_go_on(
    row: Row, change: Row, reason: str
) -> None:
    batch = events({**SUBSCRIBED, "seq": 1}, {**row, "seq": 2, **change}, {**UNSUBSCRIBED, "seq": 3})
    valid, rejected = check_updates(split(batch)[1])
    assert valid.seq.tolist() == [1, 3]
    assert valid.is_subscribe.to_pylist() == [True, False]
    assert [corner[0].as_py() for corner in valid.corners] == [-1.0, -2.0, 3.0, 4.0]
    bad = {**row, **change}
    assert rejected.to_pylist() == [{"seq": 2, "op": bad["op"], "id": bad["id"], "reason": reason}]


def test_an_unsubscribe_needs_only_its_id() -> None:
    spoiled = {**UNSUBSCRIBED, "min_lon": math.nan, "max_lat": 1e9, "lat": 999.0}
    valid, rejected = check_updates(split(events(spoiled))[1])
    assert valid.ids.to_pylist() == ["s"]
    assert rejected.num_rows == 0


def test_empty_texts_and_the_edges_of_the_world_are_valid() -> None:
    corners = [{**PUBLISHED, "lon": lon, "lat": lat, "text": ""} for lon in (-180, 180) for lat in (-90, 90)]
    valid, rejected = check_publications(split(events(*corners))[0])
    assert len(valid.seq) == 4
    assert rejected.num_rows == 0


def test_a_region_across_the_antimeridian_or_of_one_point_is_valid() -> None:
    crossing = {**SUBSCRIBED, "min_lon": 170.0, "max_lon": -170.0}
    point = {**SUBSCRIBED, "min_lon": 1.0, "max_lon": 1.0, "min_lat": 90.0, "max_lat": 90.0}
    valid, rejected = check_updates(split(events(crossing, point))[1])
    assert len(valid.seq) == 2
    assert rejected.num_rows == 0


def test_batches_of_nothing_are_valid() -> None:
    publications, updates = split(events())
    assert publications.schema == PUBLICATIONS
    assert updates.schema == UPDATES
    assert len(check_publications(publications)[0].seq) == 0
    checked, rejected = check_updates(updates)
    assert len(checked.seq) == len(checked.spans.data) == 0
    assert rejected.schema == REJECTED


def test_what_has_no_known_operation_goes_with_the_updates() -> None:
    publications, updates = split(events(PUBLISHED, SUBSCRIBED, {**PUBLISHED, "op": None}, UNSUBSCRIBED))
    assert publications.num_rows == 1
    assert updates.column("op").to_pylist() == ["subscribe", None, "unsubscribe"]


seqs = st.lists(st.one_of(st.none(), st.integers(-5, 15)), max_size=12)


@given(seqs, st.integers(-6, 10))
@settings(max_examples=150, deadline=None)
def test_in_order_keeps_what_is_above_all_before_it(values: list[int | None], high_water: int) -> None:
    batch = events(*({**PUBLISHED, "seq": value} for value in values))
    kept, rejected, new_high_water = in_order(batch, high_water)
    expected: list[int] = []
    reasons: list[str] = []
    for value in values:
        if value is None:
            reasons.append("seq is missing")
        elif value <= high_water:
            reasons.append(f"seq must be above {high_water}, the one before it; got {value}")
        else:
            expected.append(value)
            high_water = value
    assert kept.column("seq").to_pylist() == expected
    assert rejected.column("reason").to_pylist() == reasons
    assert new_high_water == high_water


@given(seqs, st.integers(-5, 10))
@settings(max_examples=150, deadline=None)
def test_not_late_keeps_what_is_above_the_last_batch_in_any_order(
    values: list[int | None], high_water: int
) -> None:
    batch = events(*({**PUBLISHED, "seq": value} for value in values))
    kept, rejected = not_late(batch, high_water)
    assert kept.column("seq").to_pylist() == [
        value for value in values if value is not None and value > high_water
    ]
    late = [value for value in values if value is None or value <= high_water]
    assert rejected.column("seq").to_pylist() == late
    for value, reason in zip(late, rejected.column("reason").to_pylist(), strict=True):
        last = f"seq must be above {high_water}, the last of the batch before; got {value}"
        assert reason == ("seq is missing" if value is None else last)


def test_conform_casts_what_means_the_same_and_drops_other_columns() -> None:
    table = pa.table(
        {
            "extra": [True],
            "id": pa.array(["p"]).dictionary_encode(),
            "op": pa.array(["publish"], pa.large_string()),
            "seq": pa.array([3], pa.uint16()),
            "lat": pa.array([1], pa.int32()),
            "lon": pa.array([2.5], pa.float32()),
            "text": pa.array(["fire"], pa.string_view()),
            "expression": pa.nulls(1),
            **{name: pa.nulls(1) for name in ("min_lon", "min_lat", "max_lon", "max_lat")},
        }
    )
    for given_events in (table, table.to_batches()[0]):
        conformed = conform(given_events)
        assert conformed.schema == EVENTS
        row = {name: value for name, value in conformed.to_pylist()[0].items() if value is not None}
        assert row == {"seq": 3, "op": "publish", "id": "p", "lat": 1.0, "lon": 2.5, "text": "fire"}


def test_a_missing_column_is_an_error_that_names_it() -> None:
    batch = events(PUBLISHED)
    with pytest.raises(SchemaError, match=r"in\.parquet: column 'text' \(string\) is missing; found \['seq'"):
        conform(batch.drop_columns(["text"]), where="in.parquet")


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("seq", pa.array(["1"]), "column 'seq' must be int64; got string"),
        ("seq", pa.array([1.0]), "column 'seq' must be int64; got double"),
        ("seq", pa.array([1 << 63], pa.uint64()), "column 'seq': "),
        ("lat", pa.array(["1.0"]), "column 'lat' must be double; got string"),
        ("lat", pa.array([True]), "column 'lat' must be double; got bool"),
        ("text", pa.array([b"fire"]), "column 'text' must be string; got binary"),
        ("id", pa.array([7]), "column 'id' must be string; got int64"),
        ("op", pa.array([["publish"]]), r"column 'op' must be string; got list"),
    ],
)
def test_a_column_of_the_wrong_type_is_an_error_that_names_it(
    name: str, column: pa.Array, message: str
) -> None:
    batch = events(PUBLISHED)
    batch = batch.set_column(EVENTS.names.index(name), name, column)
    with pytest.raises(SchemaError, match=message):
        conform(batch)


def test_a_column_that_is_there_twice_is_an_error() -> None:
    batch = events(PUBLISHED)
    with pytest.raises(SchemaError, match="column 'seq' must be there once; got it 2 times"):
        conform(batch.append_column("seq", pa.array([5])))


def test_rejected_records_keep_whatever_is_known() -> None:
    rows = [(None, None, None, "unreadable"), (5, "publish", "p", "late")]
    assert [tuple(row.values()) for row in rejected_records(rows).to_pylist()] == rows
    assert rejected_records([]).schema == REJECTED


def _strings(*values: bytes | None) -> pa.Array:
    """Make an Arrow string array of any bytes, as a file may hold them."""
    binary = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), binary.buffers())


def test_bytes_that_are_no_utf8_are_rejected_and_the_record_can_be_read() -> None:
    columns = {
        "seq": [1, 2, 3],
        "id": _strings(b"ok", b"bad\xff", b"fine"),
        "lat": [1.0, 99.0, 1.0],
        "lon": [1.0] * 3,
        "text": _strings(b"caf\xc3\xa9", b"x", b"\xf0\x28"),
    }
    batch = pa.RecordBatch.from_arrays(
        [pa.array(columns[name]) for name in PUBLICATIONS.names], PUBLICATIONS.names
    )
    valid, rejected = check_publications(batch)
    assert valid.ids.to_pylist() == ["ok"]
    assert rejected.column("reason").to_pylist() == ["id is not valid UTF-8", "text is not valid UTF-8"]
    assert rejected.column("id").to_pylist() == ["bad\ufffd", "fine"]


def test_updates_with_bytes_that_are_no_utf8_are_rejected() -> None:
    rows = {
        "seq": pa.array([1, 2, 3]),
        "op": _strings(b"unsubscribe", b"subscribe", b"sub\xff"),
        "id": _strings(b"\xff", b"a", b"b"),
        "expression": _strings(None, b"fire \xff", None),
        **{name: pa.array([0.0] * 3) for name in ("min_lon", "min_lat", "max_lon", "max_lat")},
    }
    valid, rejected = check_updates(pa.RecordBatch.from_pydict(rows))
    assert len(valid.seq) == 0
    reasons = rejected.column("reason").to_pylist()
    assert reasons[:2] == ["id is not valid UTF-8", "expression is not valid UTF-8"]
    assert "got 'sub\ufffd'" in reasons[2]


_ids = st.sampled_from([b"a", b"", None, b"\xff", b"i" * 1_024, b"i" * 1_025, "\u00fc".encode()])
_texts = st.sampled_from([b"fire", b"", None, b"caf\xc3", b"x" * 65_536, b"x" * 65_537])
_lats = st.sampled_from([0.0, 90.0, -90.0, 90.1, -90.1, None, math.nan, math.inf])
_lons = st.sampled_from([0.0, 180.0, -180.0, 180.1, -180.1, None, math.nan, -math.inf])


def _is_good(row: tuple[bytes | None, float | None, float | None, bytes | None]) -> bool:
    name, lat, lon, text = row
    if name is None or text is None or lat is None or lon is None:
        return False
    try:
        is_short = 1 <= len(name.decode().encode()) <= 1_024 and len(text.decode().encode()) <= 65_536
    except UnicodeDecodeError:
        return False
    return is_short and -90 <= lat <= 90 and -180 <= lon <= 180


@pytest.mark.kernel
@given(st.lists(st.tuples(_ids, _lats, _lons, _texts), max_size=8), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_publications_are_parted_as_a_look_at_each_one_would(
    rows: list[tuple[bytes | None, float | None, float | None, bytes | None]], start: int
) -> None:
    names, lats, lons, texts = zip(*rows, strict=True) if rows else ((), (), (), ())
    seq = pa.array(range(len(rows)), pa.int64())
    coordinates = (pa.array(column, pa.float64()) for column in (lats, lons))
    batch = pa.RecordBatch.from_arrays(
        [seq, _strings(*names), *coordinates, _strings(*texts)], schema=PUBLICATIONS
    ).slice(start)
    valid, rejected = check_publications(batch)
    good = [row for row in range(start, len(rows)) if _is_good(rows[row])]
    assert valid.seq.tolist() == good
    assert [each.encode() for each in valid.ids.to_pylist()] == [names[row] for row in good]
    assert [each.encode() for each in valid.texts.to_pylist()] == [texts[row] for row in good]
    assert valid.lat.tolist() == [lats[row] for row in good]
    assert valid.lon.tolist() == [lons[row] for row in good]
    assert rejected.column("seq").to_pylist() == [row for row in range(start, len(rows)) if row not in good]
    assert all(rejected.column("reason").to_pylist())
