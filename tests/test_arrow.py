"""Views are what Arrow holds, whatever offset, width and nulls it has; strings come out as written."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.arrays import frozen
from ps2stream.arrow import (
    COPY_MARGIN,
    Spans,
    are_same,
    array_of,
    buffer_for,
    concat,
    copy_bytes,
    copy_string,
    is_valid,
    list_values,
    lists_of,
    nested_of,
    numbers_of,
    offsets_of,
    pick,
    raw_spans_of,
    read_batch,
    spans_of,
    string_array,
    strings_of,
    take_strings,
    taken,
    views_of,
)
from ps2stream.errors import StateError

STRINGS = ["zero", "", "zwei", None, "trôis", "four"]


def _rows(spans: Spans) -> list[bytes]:
    return [spans.data[a:b].tobytes() for a, b in zip(spans.offsets[:-1], spans.offsets[1:], strict=True)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize(("start", "stop"), [(0, 6), (1, 5), (3, 4), (2, 2), (6, 6)])
def test_spans_are_the_utf8_bytes_of_a_slice(kind: pa.DataType, start: int, stop: int) -> None:
    array = pa.array(STRINGS, kind).slice(start, stop - start)
    assert _rows(spans_of(array)) == [(text or "").encode() for text in STRINGS[start:stop]]


def test_an_array_of_nulls_gives_empty_spans() -> None:
    assert _rows(spans_of(pa.array([None, None], pa.string()))) == [b"", b""]


def test_bytes_under_a_null_are_not_seen() -> None:
    hidden = pa.Array.from_buffers(
        pa.string(),
        2,
        [pa.py_buffer(b"\x02"), pa.array([0, 3, 6], pa.int32()).buffers()[1], pa.py_buffer(b"badfor")],
    )
    assert _rows(spans_of(hidden)) == [b"", b"for"]


def test_spans_are_read_only_even_over_mutable_buffers() -> None:
    spans = spans_of(pa.array(STRINGS))
    assert not spans.data.flags.writeable
    assert not spans.offsets.flags.writeable


def test_other_types_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="got int64"):
        spans_of(pa.array([1]))


def _batch(n: int) -> pa.RecordBatch:
    lists = [[[row, row + 1]] * (row % 3) for row in range(n)]
    kind = pa.large_list(pa.large_list(pa.uint64()))
    return pa.RecordBatch.from_arrays(
        [pa.array([str(row) for row in range(n)], pa.string()), pa.array(lists, kind)], ["a", "b"]
    )


@given(st.lists(st.booleans(), max_size=9))
def test_rows_are_picked_and_taken_as_a_filter_would(flags: list[bool]) -> None:
    rows, is_wanted = _batch(len(flags)), np.array(flags, np.bool_)
    wanted = [row for row, flag in zip(rows.to_pylist(), flags, strict=True) if flag]
    assert pick(rows, is_wanted).to_pylist() == wanted
    assert taken(rows.column("b"), np.flatnonzero(is_wanted)).to_pylist() == [row["b"] for row in wanted]


@given(st.lists(st.integers(0, 2), min_size=1, max_size=4))
def test_batches_are_joined_whether_they_have_rows_or_not(sizes: list[int]) -> None:
    batches = [_batch(size) for size in sizes]
    found = concat(batches)
    assert found.to_pylist() == [row for batch in batches for row in batch.to_pylist()]
    assert found.schema == batches[0].schema


def _stream(batch: pa.RecordBatch, n_batches: int = 1) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(n_batches):
            writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_the_first_batch_of_a_stream_is_read(n_rows: int) -> None:
    other = pa.RecordBatch.from_pydict({"c": [n_rows]})
    for batch in (_batch(n_rows), other, _batch(n_rows + 1), other):
        assert read_batch(_stream(batch, 2)).equals(batch)
        assert read_batch(pa.py_buffer(_stream(batch))).schema == batch.schema


def test_what_is_no_stream_with_a_batch_is_refused() -> None:
    stream = _stream(_batch(3))
    n_schema = 8 + int.from_bytes(stream[4:8], "little")
    legacy = stream[4:]
    pieces = (b"", b"garbage", stream[:7], stream[:40], stream[: n_schema + 9], stream[:-20], legacy)
    for garbage in (*pieces, stream[:n_schema], _stream(_batch(3), 0), stream[n_schema:]):
        with pytest.raises((pa.ArrowException, OSError)):
            read_batch(garbage)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize(("start", "stop"), [(0, 6), (1, 5), (3, 4), (2, 2), (6, 6)])
def test_raw_spans_are_the_same_bytes_wherever_they_begin(kind: pa.DataType, start: int, stop: int) -> None:
    texts = [text or "" for text in STRINGS]
    spans = raw_spans_of(pa.array(texts, kind).slice(start, stop - start))
    assert _rows(spans) == [text.encode() for text in texts[start:stop]]
    assert not spans.data.flags.writeable
    assert not spans.offsets.flags.writeable
    with pytest.raises(TypeError, match="got int64"):
        raw_spans_of(pa.array([1]))


@pytest.mark.kernel
@given(st.lists(st.text(max_size=12), min_size=1, max_size=6), st.data())
@settings(max_examples=60, deadline=None)
def test_strings_are_taken_in_any_order_and_as_often_as_asked_for(
    texts: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(texts) - 1))
    strings = pa.array(texts, pa.string()).slice(start)
    rows = np.array(data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=9)), np.int64)
    for spans in (raw_spans_of(strings), spans_of(strings)):
        found = string_array(*take_strings(spans, rows))
        found.validate(full=True)
        assert found.to_pylist() == [strings[row].as_py() for row in rows.tolist()]


@pytest.mark.kernel
def test_strings_are_the_same_if_their_bytes_are() -> None:
    texts = ["a", "a", "b", "", "", "aa"]
    spans = spans_of(pa.array(texts))
    for one, other in itertools.product(range(len(texts)), repeat=2):
        assert are_same(spans, one, other) == (texts[one] == texts[other])


@pytest.mark.kernel
@given(st.lists(st.text(max_size=20), max_size=8))
@settings(max_examples=60, deadline=None)
def test_strings_come_out_as_they_were_copied(texts: list[str]) -> None:
    encoded = [text.encode() for text in texts]
    source = np.frombuffer(b"".join(encoded) + bytes(COPY_MARGIN), np.uint8).copy()
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    for copy, n_spare in ((copy_bytes, COPY_MARGIN), (copy_string, 0)):
        data = buffer_for(int(offsets[-1]))
        frozen_source = frozen(source[: offsets[-1] + n_spare])
        for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            copy(frozen_source, start, stop, data, start)
        assert string_array(offsets, data, int(offsets[-1])).to_pylist() == texts


@given(st.binary(max_size=40), st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_a_copy_touches_nothing_before_it_and_no_more_than_the_room_behind_it(
    copied: bytes, start: int, to: int
) -> None:
    source = np.zeros(start + len(copied) + COPY_MARGIN, np.uint8)
    source[start : start + len(copied)] = np.frombuffer(copied, np.uint8)
    target = np.full(to + len(copied) + 2 * COPY_MARGIN, 7, np.uint8)
    copy_bytes(source, start, start + len(copied), target, to)
    assert (target[:to] == 7).all()
    assert target[to : to + len(copied)].tobytes() == copied
    assert (target[to + len(copied) + COPY_MARGIN :] == 7).all()


def test_more_bytes_than_an_arrow_string_array_holds_are_refused() -> None:
    data = buffer_for(1 << 31)
    assert len(data) == 0, "nobody has to have so much memory to be told"
    with pytest.raises(StateError, match="2,147,483,648 were needed; use smaller batches"):
        string_array(np.zeros(1, np.int32), data, 1 << 31)


LISTS = [[1, 2], [], [3], [4, 5, 6], []]


@pytest.mark.parametrize("list_of", [pa.list_, pa.large_list])
@pytest.mark.parametrize(("start", "stop"), [(0, 5), (1, 5), (2, 3), (1, 2), (3, 3), (5, 5)])
def test_lists_are_viewed_as_values_and_offsets_from_0(
    list_of: Callable[[pa.DataType], pa.DataType], start: int, stop: int
) -> None:
    whole = pa.array([[0], *LISTS], list_of(pa.uint64())).slice(1)
    lists, wanted = whole.slice(start, stop - start), LISTS[start:stop]
    views = views_of(lists)
    assert [views.row(i).tolist() for i in range(views.n_rows)] == wanted
    assert views.offsets.dtype == np.dtype(np.int64)
    assert views.offsets[0] == 0
    assert not views.values.flags.writeable
    assert not views.offsets.flags.writeable
    assert list_values(lists).tolist() == [*itertools.chain(*wanted)]
    lengths = np.diff(offsets_of(lists))
    assert lengths.tolist() == [len(each) for each in wanted]


def test_lists_of_values_that_are_a_slice_themselves_are_viewed_as_they_are() -> None:
    values = pa.array([9, 1, 2, 3], pa.int64()).slice(1)
    lists = pa.LargeListArray.from_arrays(pa.array([0, 2, 3], pa.int64()), values)
    assert views_of(lists).row(0).tolist() == [1, 2]
    assert list_values(lists.slice(1)).tolist() == [3]


def test_numbers_and_lists_are_what_they_were_before() -> None:
    numbers = np.array([1, 2, 3], np.uint64)
    values = array_of(numbers, pa.uint64())
    assert values.equals(pa.array(numbers))
    lists = lists_of(pa.large_list(pa.uint64()), np.array([0, 0, 2, 3]), values)
    lists.validate(full=True)
    assert lists.to_pylist() == [[], [1, 2], [3]]


@given(
    st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=20), st.integers(0, 20), st.integers(0, 20)
)
def test_strings_are_those_of_a_slice_with_its_nulls(rows: list[str | None], start: int, n: int) -> None:
    strings = strings_of(pa.array(rows, pa.string()).slice(start, n))
    found = [
        strings.data[strings.offsets[row] : strings.offsets[row + 1]].tobytes().decode()
        if is_valid(strings.bits, strings.first_bit + row)
        else None
        for row in range(len(strings.offsets) - 1)
    ]
    assert found == rows[start : start + n]


@given(
    st.lists(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=3), max_size=9),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_nested_lists_are_those_of_a_slice(rows: list[list[list[int]]], start: int, n: int) -> None:
    kind = pa.large_list(pa.large_list(pa.int64()))
    nested = nested_of(pa.array(rows, kind).slice(start, n))
    assert nested.outer[0] == nested.inner[0] == 0
    assert len(nested.values) == nested.inner[-1]
    assert len(nested.inner) == nested.outer[-1] + 1
    values = array_of(nested.values, pa.int64())
    again = lists_of(kind, nested.outer, lists_of(kind.value_type, nested.inner, values))
    assert again.to_pylist() == rows[start : start + n]


@pytest.mark.parametrize(("start", "n"), [(0, 4), (1, 2), (3, 1), (2, 0)])
def test_numbers_are_those_of_a_slice_where_they_are_not_null(start: int, n: int) -> None:
    numbers = pa.array([1.5, None, 2.5, 3.5]).slice(start, n)
    viewed = numbers_of(numbers, np.float64)
    assert not viewed.flags.writeable
    valid = numbers.is_valid().to_pylist()
    assert viewed[valid].tolist() == numbers.drop_null().to_pylist()
