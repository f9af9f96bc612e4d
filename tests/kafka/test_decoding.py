"""Records become the same events whichever way they are read, and what is wrong with one stops no other."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ps2stream.kafka import decoding
from ps2stream.kafka.decoding import Decoded, decode_publications, decode_updates
from ps2stream.kafka.numbering import MAX_ROWS, NumberedSpan
from ps2stream.kafka.reading import Record, Span
from ps2stream.model.schemas import (
    PLACED_PUBLICATIONS,
    PUBLICATIONS,
    REJECTED,
    SUBSCRIBE,
    UNSUBSCRIBE,
    UPDATES,
)
from ps2stream.roles.packets import encode

PLACE = NumberedSpan(Span("t.publications", 2, 100, 10_000), 7)


def records_of(*values: bytes | None) -> list[Record]:
    return [Record(100 + number, None, value) for number, value in enumerate(values)]


def one_by_one(records: list[Record], schema: pa.Schema = PUBLICATIONS) -> Decoded:
    """Decode each record alone and by the slow way: behind something that Arrow's reader refuses."""
    parts = [decode_publications([record, Record(9_999, None, b"1")], PLACE, schema) for record in records]
    last = PLACE.seq(9_999)
    events = [part.events for part in parts]
    rejected = [
        part.rejected.filter(pa.array([seq != last for seq in part.rejected.column("seq").to_pylist()]))
        for part in parts
    ]
    return Decoded(
        pa.concat_batches([_none(schema), *events]),
        pa.concat_batches([_none(REJECTED), *rejected]),
    )


def _none(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def assert_same(records: list[Record], schema: pa.Schema = PUBLICATIONS) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_FEW", 1)
        at_once = decode_publications(records, PLACE, schema)
    apart = one_by_one(records, schema)
    # As text: nan is no nan's equal.
    assert repr(at_once.events.to_pylist()) == repr(apart.events.to_pylist())
    assert at_once.rejected.to_pylist() == apart.rejected.to_pylist()


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.sampled_from(["Feature", "FeatureCollection", "\ud800", "\udc00", "\x00", 10**400, -0.0, 1e-320]),
)
plain = st.fixed_dictionaries(
    {"id": st.text(max_size=4), "lat": st.floats(-90, 90), "lon": st.floats(-180, 180), "text": st.text()}
)
odd = st.dictionaries(st.sampled_from(["id", "lat", "lon", "text", "type", "x", ""]), scalars)
feature = st.builds(
    lambda lon, lat, id: {
        "type": "Feature",
        "id": id,
        "geometry": {"type": "Point", "coordinates": [lon, lat]},
        "properties": {"text": "t"},
    },
    scalars,
    st.floats(-90, 90),
    scalars,
)
objects = st.one_of(plain, plain, plain, odd, feature, scalars)
values = st.one_of(
    st.builds(lambda value, ascii: _json(value, ascii), objects, st.booleans()),
    st.sampled_from(
        [
            b"",
            b" ",
            b"{}",
            b"{}{}",
            b"{} {}",
            b'{"id":',
            b'"a"}',
            b'{"id":"a"}{"id":"b"}\0}',
            b'{"id":"a\xff"}',
            b'{"x":"\xff","id":"a"}',
            b'\xef\xbb\xbf{"id":"a"}',
            b'\x1e{"id":"a"}',
            b'{"id":"a","id":"b"}',
            b'{"lat":01}',
            b'{"lat":1.}',
            b'{"lat":+1}',
            b'{"lat":.5}',
            b'{"lat":1e999}',
            b'{"lat":NaN,"lon":-Infinity}',
            b'{"lat":"1"}',
            b'{"id":"a"}\n',
            b'{"id":\n"a"}',
            b'{"id":"a\tb"}',
            b'{"id":"}',
            b'{"x":' + b"9" * 5_000 + b"}",
            b'{"x":' + b"[" * 3_000 + b"]" * 3_000 + b"}",
            b'{"\\u0069d":"a"}',
            b'{"id":"\\ud83d\\ude00"}',
            b'{"id":"a",}',
            b"/* */{}",
            b"[{}]",
        ]
    ),
    st.binary(max_size=8),
)


def _json(value: object, ascii: bool) -> bytes:
    return json.dumps(value, ensure_ascii=ascii).encode(errors="surrogatepass")


@given(st.lists(values, max_size=12))
@example([b'{"id":"a"}{"id":"b"}', b" "])
@example([b'{"id":', b'"a"}', b"{}{}"])
@example([b'{"id":"a"}{"id":"b"}\0}', b'{"id":"c"}'])
@example([b'{"lat":1' + b"0" * 400 + b"}", b'{"lat":1e400}'])
@settings(deadline=None, max_examples=300)
def test_all_at_once_comes_to_the_same_as_one_by_one(given_values: list[bytes]) -> None:
    assert_same(records_of(*given_values))


@pytest.mark.parametrize("seed", range(3))
def test_bad_records_among_many_good_ones_are_found(seed: int) -> None:
    dice = random.Random(seed)
    good = [_json({"id": f"p{n}", "lat": n / 7, "lon": -n, "text": "x"}, True) for n in range(400)]
    for place in dice.sample(range(400), 5):
        good[place] = dice.choice([b"no", b'{"lat":"1"}', b"", b'{"id":5,"lat":1,"lon":2,"text":""}'])
    assert_same(records_of(*good))
    assert decode_publications(records_of(*good), PLACE).events.num_rows >= 395


def test_usual_publications_are_read_by_arrow_and_keep_their_values() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "lat": 1, "lon": -2.5, "text": "café 🙂"},
        {"id": "b", "lat": None, "lon": 0.1, "text": "\n\u0000"},
        {"other": [1, {"id": "no"}], "id": "c"},
    ]
    found = decode_publications(records_of(*(_json(row, False) for row in rows)), PLACE).events.to_pylist()
    assert [row["seq"] for row in found] == [PLACE.seq(100 + n) for n in range(3)]
    for row, wanted in zip(found, rows, strict=True):
        assert {name: row[name] for name in ("id", "lat", "lon", "text")} == {
            name: wanted.get(name) for name in ("id", "lat", "lon", "text")
        }


def test_publications_without_an_id_are_named_after_their_place() -> None:
    packet = encode(_publications(2, id=None))
    found = decode_publications(records_of(b"{}", packet, b'{"id":"own"}'), PLACE).events
    assert found.column("id").to_pylist() == ["2-100", "2-101", "2-101-1", "own"]


def _publications(n: int, **columns: Any) -> pa.RecordBatch:
    row = {"id": "a", "lon": 1.0, "lat": 2.0, "text": "x", **columns}
    return pa.RecordBatch.from_pylist(
        [row] * n, schema=pa.schema([f for f in PUBLICATIONS if f.name != "seq"])
    )


def test_packets_may_have_other_orders_and_types_of_columns_and_any_seq() -> None:
    packet = pa.table(
        {
            "text": pa.array(["t", "u"]).dictionary_encode(),
            "seq": pa.array([9, 9]),
            "lat": pa.array([1, 2], pa.int8()),
            "lon": pa.array([0.5, 1.5], pa.float32()),
            "more": pa.array([[1], []]),
            "id": pa.array(["a", "b"], pa.large_string()),
        }
    ).to_batches()[0]
    found = decode_publications(records_of(encode(packet), encode(_publications(0))), PLACE)
    assert found.rejected.num_rows == 0
    first = PLACE.seq(100)
    assert found.events.to_pylist() == [
        {"seq": first, "id": "a", "lon": 0.5, "lat": 1.0, "text": "t"},
        {"seq": first + 1, "id": "b", "lon": 1.5, "lat": 2.0, "text": "u"},
    ]


def _twice(name: str) -> bytes:
    batch = _publications(1)
    return encode(pa.RecordBatch.from_arrays([*batch.columns, batch.column(0)], [*batch.schema.names, name]))


def _broken_offsets() -> bytes:
    array = pa.StringArray.from_buffers(
        2, pa.py_buffer(b"\0\0\0\0\xff\xff\xff\x7f\1\0\0\0"), pa.py_buffer(b"a")
    )
    batch = _publications(2)
    return encode(batch.set_column(batch.schema.get_field_index("text"), "text", array))


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (encode(_publications(MAX_ROWS + 1)), r"at most 65,536 rows; got 65,537"),
        (encode(_publications(1).drop_columns("lat")), "column 'lat' .* is missing"),
        (_twice("id"), "column 'id' must be there once"),
        (encode(_publications(3))[:-60], "must be an Arrow IPC stream"),
        (b"\xff\xff\xff\xff", "must be an Arrow IPC stream|column"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7fabc", "must be an Arrow IPC stream"),
        (_broken_offsets(), "must be an Arrow IPC stream"),
    ],
)
def test_a_packet_that_cannot_be_read_is_rejected_with_its_place(packet: bytes, reason: str) -> None:
    found = decode_publications(records_of(b'{"id":"a"}', packet, b'{"id":"b"}'), PLACE)
    assert found.events.column("id").to_pylist() == ["a", "b"]
    [row] = found.rejected.to_pylist()
    assert row["seq"] == PLACE.seq(101)
    assert row["reason"].startswith("record 101 of partition 2 of t.publications: ")
    assert re.search(reason, row["reason"])


@pytest.mark.parametrize(
    "odd",
    [_twice("id"), _broken_offsets(), encode(_publications(2).select(["text", "id", "lat", "lon"])), b""],
)
def test_packets_come_to_the_same_together_as_one_by_one(odd: bytes) -> None:
    good = [encode(_publications(n)) for n in (3, 0, 1)]
    assert_same(records_of(*good, odd, *good) if odd else records_of(*good))


@given(st.integers(0, 2**32), st.integers(1, 6))
@settings(deadline=None, max_examples=300)
def test_damaged_packets_are_read_or_rejected_and_nothing_else(seed: int, n_damages: int) -> None:
    dice, packet = random.Random(seed), bytearray(encode(_publications(5)))
    for _ in range(n_damages):
        packet[dice.randrange(4, len(packet))] = dice.randrange(256)
    found = decode_publications(records_of(bytes(packet), b'{"id":"b"}'), PLACE)
    assert found.events.column("id").to_pylist()[-1] == "b"
    assert found.rejected.num_rows <= 1
    assert found.events.num_rows == 1 or not found.rejected.num_rows


def test_features_of_one_record_are_rows_of_it() -> None:
    point = {"type": "Feature", "id": 7, "geometry": {"type": "Point", "coordinates": [1, 2]}}
    value = {"type": "FeatureCollection", "features": [point, 5, point]}
    found = decode_publications(records_of(_json(value, True)), PLACE)
    assert found.events.column("seq").to_pylist() == [PLACE.seq(100), PLACE.seq(100, 2)]
    assert found.events.column("id").to_pylist() == ["7", "7"]
    [row] = found.rejected.to_pylist()
    assert (row["seq"], row["op"]) == (PLACE.seq(100, 1), "publish")
    assert "feature 2: a publication must be a JSON object; got the number 5" in row["reason"]


def updates_of(*records: tuple[bytes | None, bytes | None]) -> Decoded:
    return decode_updates([Record(100 + n, *each) for n, each in enumerate(records)], PLACE)


def test_updates_are_subscribe_unless_they_say_otherwise() -> None:
    box = {"id": "s", "expression": "a", "region": [0, 1, 2, 3]}
    found = updates_of(
        (None, _json(box, True)),
        (None, _json({**box, "op": "subscribe"}, True)),
        (None, b'{"op":"unsubscribe","id":"s"}'),
        ("ü".encode(), None),
    )
    assert found.rejected.num_rows == 0
    assert found.events.column("op").to_pylist() == [SUBSCRIBE, SUBSCRIBE, UNSUBSCRIBE, UNSUBSCRIBE]
    assert found.events.column("id").to_pylist() == ["s", "s", "s", "ü"]
    assert found.events.column("max_lat").to_pylist() == [3.0, 3.0, None, None]
    assert found.events.schema == UPDATES


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, None, "the record has no value"),
        (b"\xff", None, "must be an id in UTF-8"),
        (b"k", b"", "must be JSON"),
        (None, b'{"op":"publish","id":"a"}', "op must be subscribe or unsubscribe; got 'publish'"),
        (None, b'{"op":["x"],"id":"a"}', "op must be subscribe or unsubscribe"),
        (None, b'{"op":"unsubscribe","id":5}', "the id of an unsubscribe must be a string"),
        (None, b'{"op":"unsubscribe","id":"\\ud800"}', "Unicode"),
        (None, b'{"id":"s","expression":"a","region":[1]}', "region must be"),
    ],
)
def test_an_update_that_cannot_be_read_is_rejected(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    found = updates_of((None, b'{"op":"unsubscribe","id":"before"}'), (key, value))
    assert found.events.column("id").to_pylist() == ["before"]
    [row] = found.rejected.to_pylist()
    assert reason in row["reason"]
    assert (row["seq"], row["op"]) == (PLACE.seq(101), None)


def assert_same_updates(records: list[Record]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_FEW", 1)
        at_once = decode_updates(records, PLACE)
        patch.setattr(decoding, "_FEW", len(records))
        apart = decode_updates(records, PLACE)
    assert repr(at_once.events.to_pylist()) == repr(apart.events.to_pylist())
    assert at_once.rejected.to_pylist() == apart.rejected.to_pylist()
    assert at_once.events.schema == apart.events.schema == UPDATES


numbers = st.one_of(st.floats(-200, 200), st.integers(-200, 200), scalars)
regions = st.one_of(
    st.lists(st.floats(-180, 180), min_size=4, max_size=4), st.lists(numbers, max_size=7), scalars
)
corners = ("min_lon", "min_lat", "max_lon", "max_lat")
operations = st.sampled_from([SUBSCRIBE, UNSUBSCRIBE, "publish", "", "op", None, 1, True, ["subscribe"]])
plain_update = st.fixed_dictionaries(
    {"id": st.text(max_size=4), "expression": st.text(max_size=8)},
    optional={
        "op": st.sampled_from([SUBSCRIBE, UNSUBSCRIBE]),
        "region": st.lists(st.floats(-180, 180), min_size=4, max_size=4),
        **dict.fromkeys(corners, st.floats(-180, 180)),
    },
)
end = st.fixed_dictionaries({"op": st.just(UNSUBSCRIBE), "id": st.text(max_size=4)})
odd_update = st.fixed_dictionaries(
    {},
    optional={
        "op": operations,
        "id": st.one_of(st.text(max_size=3), scalars),
        "expression": scalars,
        "region": regions,
        "type": scalars,
        "properties": st.one_of(scalars, st.fixed_dictionaries({"op": operations, "id": scalars})),
        "x": st.one_of(scalars, st.fixed_dictionaries({"op": operations, "region": regions})),
        **dict.fromkeys(corners, numbers),
    },
)
update_feature = st.builds(
    lambda operation, id, box: {
        "type": "Feature",
        "id": id,
        "bbox": box,
        "properties": {"op": operation, "expression": "tea"},
    },
    operations,
    scalars,
    regions,
)
update_values = st.one_of(
    st.builds(
        _json, st.one_of(plain_update, end, plain_update, end, odd_update, update_feature), st.booleans()
    ),
    st.sampled_from(
        [
            b'{"op":null,"id":"a"}',
            b'{"\\u006fp":null,"id":"a"}',
            b'{"\\u006Fp":"unsubscribe","id":"a"}',
            b'{"o\\u0070":null,"id":"a"}',
            b'{"op":"unsubscribe","op":"subscribe","id":"a"}',
            b'{"op":"subscribe","op":null,"id":"a"}',
            b'{"id":"op","op":null}',
            b'{"id":"op"}',
            b'{"op":"unsubscribe"}',
            b'{"op":"unsubscribe","id":null}',
            b'{"op":"unsubscribe","id":7}',
            b'{"op":"unsubscribe","id":"a","region":[1]}',
            b'{"op":"unsubscribe","id":"a","expression":5}',
            b'{"op":"unsubscribe","id":"a","expression":"b","region":[1,2,3,4],"min_lon":1}',
            b'{"id":"a","id":"b"}',
            b'{"id":7,"region":[0,0,1,1]}',
            b'{"id":7.5}',
            b'{"id":true}',
            b'{"region":null,"min_lon":1}',
            b'{"\\u0072egion":null,"min_lon":1}',
            b'{"re\\u0067ion":[1,2,3,4]}',
            b'{"region":[]}',
            b'{"region":[1,2,3]}',
            b'{"region":[1,2,3,4,5]}',
            b'{"region":[1,2,3,4,5,6],"min_lon":9}',
            b'{"region":[1,2,NaN,4,5,6]}',
            b'{"region":[1,null,3,4]}',
            b'{"region":[1,2,3,"4"]}',
            b'{"region":[1,2,3,[4]]}',
            b'{"region":[1,2,3,true]}',
            b'{"region":{"min_lon":1}}',
            b'{"region":[1,2,3,4],"region":[5,6,7,8]}',
            b'{"region":[-0,0,-0.0,0.0]}',
            b'{"min_lon":-0,"min_lat":-0.0}',
            b'{"region":[1,2,3,1e999]}',
            b'{"region":[1,2,3,' + b"9" * 400 + b"]}",
            b'{"min_lon":' + b"9" * 400 + b"}",
            b'{"min_lon":1e-400,"max_lon":5e-324}',
            b'{"min_lon":9007199254740993,"max_lon":0.1000000000000000055511151231257827}',
            b'{"min_lon":"1"}',
            b'{"x":{"region":null},"id":"a"}',
            b'{"id":"\\ud83d\\ude00","expression":"\\u00fc"}',
            b'{"id":"\\ud83d"}',
            b'{"id":"\xff"}',
            b'{"id":"a"}{"id":"b"}',
            b'{"typ\\u0065":"Feature","id":"a"}',
            b'{"typ\\u0065":"FeatureCollection","features":[{"id":"a"}]}',
            b"{}",
            b"{} ",
            b"",
            b"[]",
        ]
    ),
    st.binary(max_size=8),
)


@given(st.lists(update_values, max_size=12))
@example([b'{"op":"subscribe","id":"op"}', b'{"op":null,"id":"a"}'])
@example([b'{"id":"a","x":{"op":1}}', b'{"op":"unsubscribe","id":"a"}'])
@example([b'{"id":"region","region":[1,2,3,4]}', b'{"region":null}', b"{}"])
@example([b'{"id":"a"}{"id":"b"}', b'{"id":"c"}', b""])
@settings(deadline=None, max_examples=500)
def test_updates_come_to_the_same_all_at_once_and_one_by_one(given_values: list[bytes]) -> None:
    assert_same_updates(records_of(*given_values))


@given(update_values, update_values)
@settings(deadline=None, max_examples=300)
def test_one_odd_update_among_usual_ones_changes_none_of_them(odd: bytes, other: bytes) -> None:
    usual = [
        _json({"id": "s", "expression": "tea", "region": [0, 1, 2.5, 3]}, True),
        b'{"op":"unsubscribe","id":"s"}',
        _json({"id": "t", "expression": "tea", "min_lon": 1, "min_lat": 2, "max_lon": 3, "max_lat": 4}, True),
    ]
    assert_same_updates(records_of(*usual, odd, *usual, other))


@pytest.mark.parametrize(
    "values",
    [
        [
            b'{"op":"subscribe","id":"s","expression":"a","region":[0,1,2,3]}',
            b'{"op":"unsubscribe","id":"s"}',
        ],
        [b'{"id":"s","expression":"\\u00fc","region":[0,1,2,3]}', b'{"op":"unsubscribe","id":"s"}'],
        [b'{"id":"s","expression":"a","min_lon":0,"min_lat":1,"max_lon":2,"max_lat":3,"note":{"by":"me"}}'],
        [b'{"id":"s",\n"expression":"a","region":[0,1,2,3]}', b'{"id":"s","expression":"a"}'],
    ],
)
def test_usual_updates_are_read_all_at_once(values: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = updates_of(*((None, value) for value in values)).events.to_pylist() * 40
    monkeypatch.setattr(decoding, "_add_objects", None)
    found = decode_updates(records_of(*values * 40), PLACE).events.to_pylist()
    assert [{**row, "seq": 0} for row in found] == [{**row, "seq": 0} for row in wanted]
    assert [row["seq"] for row in found] == [PLACE.seq(100 + n) for n in range(len(found))]


limits = (str((1 << 63) - 1), str(-(1 << 63)), str(1 << 63), str(-(1 << 63) - 1))
demands = st.sampled_from(
    ["7", "7.0", "7.5", "1e3", "-0", "-9", "null", "true", '"7"', "[7]", "007", *limits]
)


@given(st.lists(st.tuples(st.sampled_from(["after", "as_of", "id"]), demands), max_size=8))
@settings(deadline=None)
def test_demands_are_read_the_same_all_at_once_and_one_by_one(drawn: list[tuple[str, str]]) -> None:
    records = records_of(*(f'{{"lat":1,"{name}":{value}}}'.encode() for name, value in drawn))
    assert_same(records, PLACED_PUBLICATIONS)
    assert_same(records)


def test_packets_may_say_where_in_the_order_they_want_to_be() -> None:
    rows = [{"id": "p", "lat": 1.0, "lon": 1.0, "text": "tea", "after": 7}]
    packets = [
        encode(pa.RecordBatch.from_pylist(rows)),
        encode(pa.RecordBatch.from_pylist(rows, schema=PUBLICATIONS)),
    ]
    found = decode_publications(records_of(*packets), PLACE, PLACED_PUBLICATIONS).events
    assert found.schema == PLACED_PUBLICATIONS
    assert found.column("after").to_pylist() == [7, None]
    assert found.column("as_of").to_pylist() == [None, None]
    assert decode_publications(records_of(*packets), PLACE).events.schema == PUBLICATIONS
