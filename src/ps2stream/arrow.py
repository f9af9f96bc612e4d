"""The border between Arrow and kernels: record batches, lists and strings as flat arrays, and back.

Arrow's own layout is what kernels want: values and offsets. Views are taken without a copy where that is
possible, and are read-only, because to numba a writeable array is another kind and compiles a kernel again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ps2stream.arrays import Array, Int32s, Int64s, Ragged, UInt8s, frozen
from ps2stream.errors import StateError
from ps2stream.kernels import copy_word, kernel, signed

#: How many bytes behind its end a copy of strings may read and write.
COPY_MARGIN = 8
_MOST_BYTES = (1 << 31) - 1


def concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Join batches, at least one; where only one has rows, it is that one."""
    filled = [batch for batch in batches if batch.num_rows] or batches[:1]
    return filled[0] if len(filled) == 1 else pa.concat_batches(filled)


def pick(rows: pa.RecordBatch, is_wanted: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """Filter rows; what lies together is a slice, where Arrow would copy it, lists within lists."""
    chosen = np.flatnonzero(is_wanted)
    if len(chosen) == rows.num_rows:
        return rows
    if len(chosen) == 0 or chosen[-1] - chosen[0] + 1 == len(chosen):
        return rows.slice(int(chosen[0]) if len(chosen) else 0, len(chosen))
    return rows.filter(pa.array(is_wanted))


def taken(values: pa.Array, rows: Int64s) -> pa.Array:
    """Return some rows, given in ascending order; those that lie together as a slice."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return values.slice(int(rows[0]), len(rows))
    return values.take(pa.array(rows))


def large_lists(values: pa.Array, *offsets: Int64s) -> pa.Array:
    """Nest ``values`` in lists, innermost offsets first."""
    for level in offsets:
        values = pa.LargeListArray.from_arrays(pa.array(level, pa.int64()), values)
    return values


def ragged_of(lists: pa.Array, flat: bool = True) -> Ragged:
    """View a list array as values and offsets; offsets start at 0 whatever slice it is."""
    if len(lists) == 0:
        values = lists.values[:0]
        return Ragged(values.to_numpy() if flat else values, np.zeros(1, np.int64))
    offsets = lists.offsets.to_numpy()
    values = lists.values[int(offsets[0]) : int(offsets[-1])]
    shifted = offsets.astype(np.int64) - int(offsets[0])
    return Ragged(values.to_numpy(zero_copy_only=True) if flat else values, shifted)


class Strings(NamedTuple):
    """A string column as it lies in memory: row ``i`` is ``data[offsets[i]:offsets[i + 1]]``, all read-only.

    ``bits`` say which rows are not null, from bit ``first_bit`` on; there are none where no row is null.
    """

    data: UInt8s
    offsets: Int32s
    bits: UInt8s
    first_bit: int


_STRING = pa.string()
_NO_BYTES = frozen(np.empty(0, np.uint8))
_NO_ROWS = frozen(np.zeros(1, np.int32))
_NO_LISTS = frozen(np.zeros(1, np.int64))


def strings_of(strings: pa.Array) -> Strings:
    """View a string array without a look at its rows; kernels tell nulls by :func:`is_valid`."""
    validity, offsets, data = strings.buffers()
    n, at = len(strings), strings.offset
    return Strings(
        _bytes_of(data),
        _view(offsets, np.int32, n + 1, 4 * at) if n else _NO_ROWS,
        _bytes_of(validity) if strings.null_count else _NO_BYTES,
        at,
    )


def numbers_of(numbers: pa.Array, dtype: type[np.generic]) -> Array:
    """View numbers as they lie in memory, with anything where one is null."""
    n = len(numbers)
    if n == 0:
        return frozen(np.empty(0, dtype))
    return _view(numbers.buffers()[1], dtype, n, np.dtype(dtype).itemsize * numbers.offset)


def _bytes_of(buffer: pa.Buffer | None) -> UInt8s:
    return _view(buffer, np.uint8, -1, 0) if buffer is not None and buffer.size else _NO_BYTES


def _view(buffer: pa.Buffer, dtype: type[np.generic], n: int, offset: int) -> Array:
    view = np.frombuffer(buffer, dtype, n, offset)
    view.flags.writeable = False  # as in spans
    return view


@kernel
def is_valid(bits: UInt8s, at: int) -> bool:
    """Say whether a bit of a column's validity is set; without bits all are."""
    return len(bits) == 0 or signed(bits[at >> 3]) >> (at & 7) & 1 != 0


class Nested(NamedTuple):
    """Lists of lists: row ``i`` has the lists ``outer[i]`` to ``outer[i + 1]``, list ``j`` likewise.

    Offsets begin at 0, whatever slice it is; all is read-only.
    """

    outer: Int64s
    inner: Int64s
    values: Array


def nested_of(lists: pa.Array) -> Nested:
    """View large lists of large lists of numbers, without nulls."""
    outer, lists = _offsets_of(lists)
    inner, values = _offsets_of(lists)
    return Nested(outer, inner, frozen(values.to_numpy()))


def _offsets_of(lists: pa.Array) -> tuple[Int64s, pa.Array]:
    """Return the offsets of lists and what they hold."""
    n, values = len(lists), lists.values
    if n == 0:
        return _NO_LISTS, values[:0]
    offsets = _view(lists.buffers()[1], np.int64, n + 1, 8 * lists.offset)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == 0 and last == len(values):
        return offsets, values
    return frozen(offsets - first), values.slice(first, last - first)


def as_column(values: Array, kind: pa.DataType) -> pa.Array:
    """View numbers as a column; Arrow's own way from numpy asks pandas first, and takes twice as long."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def as_lists(kind: pa.DataType, offsets: Int64s, values: pa.Array) -> pa.Array:
    """View offsets and values as a column of large lists; ``kind`` is that of the lists."""
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets)], children=[values])


class Spans(NamedTuple):
    """Row ``i`` is the bytes ``data[offsets[i]:offsets[i + 1]]``; both arrays are read-only."""

    data: UInt8s
    offsets: Int64s

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1


def spans_of(strings: pa.Array) -> Spans:
    """View an Arrow string array as spans; the bytes are not copied, a null is an empty span."""
    if pa.types.is_string(strings.type):
        offset_type: type[np.signedinteger] = np.int32
    elif pa.types.is_large_string(strings.type):
        offset_type = np.int64
    else:
        raise TypeError(f"strings must be an Arrow string or large_string array; got {strings.type}")
    if strings.null_count:
        # Arrow leaves open what bytes lie under a null.
        strings = strings.fill_null("")
    _, offset_buffer, data_buffer = strings.buffers()
    if len(strings) == 0 or offset_buffer is None:
        return _read_only(np.empty(0, dtype=np.uint8), np.zeros(len(strings) + 1, dtype=np.int64))
    window = slice(strings.offset, strings.offset + len(strings) + 1)
    offsets = np.frombuffer(offset_buffer, dtype=offset_type)[window].astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.empty(0, dtype=np.uint8)
    if data_buffer is not None and last > first:
        data = np.frombuffer(data_buffer, dtype=np.uint8)[first:last]
    return _read_only(data, offsets - first)


def _read_only(data: UInt8s, offsets: Int64s) -> Spans:
    # A kernel is compiled once per kind of argument, and to numba a writeable array is another
    # kind: without this, a buffer that Arrow happens to own as mutable would compile it all again.
    data.setflags(write=False)
    offsets.setflags(write=False)
    return Spans(data, offsets)


@kernel
def copy_bytes(source: UInt8s, start: int, stop: int, target: UInt8s, to: int) -> None:
    """Copy a range of bytes; what lies up to ``COPY_MARGIN`` bytes behind it in the target is overwritten."""
    while start < stop:
        copy_word(target, to, source, start)
        start += 8
        to += 8


def buffer_for(n_bytes: int) -> UInt8s:
    """Return a buffer for the bytes of one string array."""
    if n_bytes > _MOST_BYTES:
        raise StateError(
            f"the ids of one batch of matches must fit into {_MOST_BYTES:,} bytes; "
            f"{n_bytes:,} were needed; use smaller batches"
        )
    return np.empty(n_bytes + COPY_MARGIN, np.uint8)


def string_array(offsets: Int32s, data: UInt8s, bits: UInt8s | None = None) -> pa.Array:
    """View offsets and bytes as an array of strings; ``bits`` say which are not null, if any is."""
    data = data[: int(offsets[-1])]
    validity = None if bits is None else pa.py_buffer(bits)
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(_STRING, len(offsets) - 1, buffers)
