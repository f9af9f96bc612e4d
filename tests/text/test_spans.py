"""Spans are what Arrow holds, whatever offset, width and nulls it holds it with."""

import pyarrow as pa
import pytest

from ps2stream.text.spans import Spans, spans_of

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
