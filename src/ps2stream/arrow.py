"""The border between Arrow and kernels: record batches, lists and strings as flat arrays, and back.

Arrow's own layout is what kernels want: values and offsets. Views are taken without a copy where that is
possible, and are read-only, because to numba a writeable array is another kind and compiles a kernel again.
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ps2stream.arrays import Array, Int32s, Int64s, Ragged, UInt8s, frozen
from ps2stream.errors import StateError
from ps2stream.kernels import copy_word, kernel, signed

#: How many bytes behind its end a copy of strings may read and write.
COPY_MARGIN = 8
#: The bytes of an array of strings.
MOST_BYTES = (1 << 31) - 1
#: A message of a stream begins with a mark and the length of what describes it.
_PREFIX = struct.Struct("<Ii")
_CONTINUES = 0xFFFFFFFF
_INT64 = pa.int64()
_STRINGS = {pa.string().id, pa.large_string().id}
_LARGE = {pa.large_string().id, pa.large_list(pa.null()).id}


def read_batch(stream: pa.Buffer | bytes) -> pa.RecordBatch:
    """Read the first batch of an Arrow IPC stream; its columns view the stream.

    Streams of one kind begin with the same bytes, which take longer to understand than the batch behind them.
    """
    buffer = pa.py_buffer(stream)
    start = memoryview(buffer)[: _PREFIX.size]
    mark, n_bytes = _PREFIX.unpack(start) if len(start) == _PREFIX.size else (0, 0)
    if mark != _CONTINUES or not 0 < n_bytes <= buffer.size - _PREFIX.size:
        raise pa.ArrowInvalid("a stream must begin with its schema")
    behind = _PREFIX.size + n_bytes
    schema = _schema_of(bytes(memoryview(buffer)[:behind]))
    try:
        return pa.ipc.read_record_batch(buffer.slice(behind), schema)
    except EOFError as error:
        raise pa.ArrowInvalid("a stream must have a batch") from error


@functools.lru_cache(maxsize=64)
def _schema_of(message: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(message))


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
    return values.take(array_of(rows, _INT64))


def large_lists(values: pa.Array, *offsets: Int64s) -> pa.Array:
    """Nest ``values`` in lists, innermost offsets first."""
    for level in offsets:
        values = pa.LargeListArray.from_arrays(pa.array(level, pa.int64()), values)
    return values


def array_of(values: Array, kind: pa.DataType) -> pa.Array:
    """View numbers that lie together as an Arrow array of their own kind.

    ``pa.array`` asks first whether pandas made them, which takes longer than most kernels for a small batch.
    """
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def lists_of(kind: pa.DataType, offsets: Int64s, values: pa.Array) -> pa.Array:
    """Nest values in large lists of a kind; no check is made."""
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, pa.py_buffer(offsets)], children=[values])


def offsets_of(column: pa.Array) -> Array:
    """View where the values of strings or lists begin, and the last ends; the first may begin anywhere."""
    kind = np.int64 if column.type.id in _LARGE else np.int32
    if len(column) == 0:
        return frozen(np.zeros(1, kind))
    # Read-only whoever owns the buffer: to numba a writeable array is of another kind.
    return _view(column.buffers()[1], kind, len(column) + 1, np.dtype(kind).itemsize * column.offset)


def views_of(lists: pa.Array) -> Ragged:
    """View lists of numbers as kernels take their input; offsets start at 0 whatever slice it is."""
    offsets = offsets_of(lists)
    first, last = offsets[0], offsets[-1]
    if first or offsets.dtype != np.int64:
        offsets = np.subtract(offsets, first, dtype=np.int64)
    return Ragged(frozen(lists.values.to_numpy()[first:last]), frozen(offsets))


def list_values(lists: pa.Array) -> Array:
    """View the numbers of all lists of a column, without nulls, one behind the other."""
    offsets = offsets_of(lists)
    values: Array = lists.values.to_numpy()[int(offsets[0]) : int(offsets[-1])]
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
    values = lists.values
    if len(lists) == 0:
        return _NO_LISTS, values[:0]
    offsets = offsets_of(lists)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == 0 and last == len(values):
        return offsets, values
    return frozen(offsets - first), values.slice(first, last - first)


class Spans(NamedTuple):
    """Row ``i`` is the bytes ``data[offsets[i]:offsets[i + 1]]``; both arrays are read-only."""

    data: UInt8s
    offsets: Int64s  # as wide as Arrow's own in raw ones

    @property
    def n_rows(self) -> int:
        return len(self.offsets) - 1


def raw_spans_of(strings: pa.Array) -> Spans:
    """View strings without nulls as Arrow has them: with all bytes of the buffer, and offsets into it."""
    _offset_type(strings)
    bytes_of = strings.buffers()[2]
    data = np.empty(0, np.uint8) if bytes_of is None else np.frombuffer(bytes_of, np.uint8)
    return Spans(frozen(data), offsets_of(strings))


def _offset_type(strings: pa.Array) -> type[np.signedinteger]:
    kind = strings.type.id
    if kind not in _STRINGS:
        raise TypeError(f"strings must be an Arrow string or large_string array; got {strings.type}")
    return np.int64 if kind in _LARGE else np.int32


def spans_of(strings: pa.Array) -> Spans:
    """View an Arrow string array as spans; the bytes are not copied, a null is an empty span."""
    offset_type = _offset_type(strings)
    if strings.null_count:
        # Arrow leaves open what bytes lie under a null.
        strings = strings.fill_null("")
    _, offset_buffer, data_buffer = strings.buffers()
    if len(strings) == 0 or offset_buffer is None:
        return _read_only(np.empty(0, dtype=np.uint8), np.zeros(len(strings) + 1, dtype=np.int64))
    window = slice(strings.offset, strings.offset + len(strings) + 1)
    offsets = np.frombuffer(offset_buffer, dtype=offset_type)[window]
    first, last = offsets[0], offsets[-1]
    data = np.empty(0, dtype=np.uint8)
    if data_buffer is not None and last > first:
        data = np.frombuffer(data_buffer, dtype=np.uint8)[first:last]
    return _read_only(data, np.subtract(offsets, first, dtype=np.int64))


def _read_only(data: UInt8s, offsets: Int64s) -> Spans:
    # A kernel is compiled once per kind of argument, and to numba a writeable array is another
    # kind: without this, a buffer that Arrow happens to own as mutable would compile it all again.
    data.setflags(write=False)
    offsets.setflags(write=False)
    return Spans(data, offsets)


@kernel
def are_same(strings: Spans, one: int, other: int) -> bool:
    """Say whether two rows have the same bytes."""
    start, to = strings.offsets[one], strings.offsets[other]
    length = strings.offsets[one + 1] - start
    if strings.offsets[other + 1] - to != length:
        return False
    for i in range(length):
        if strings.data[start + i] != strings.data[to + i]:
            return False
    return True


@kernel
def copy_bytes(source: UInt8s, start: int, stop: int, target: UInt8s, to: int) -> None:
    """Copy a range of bytes; what lies up to ``COPY_MARGIN`` bytes behind it in the target is overwritten."""
    while start < stop:
        copy_word(target, to, source, start)
        start += 8
        to += 8


@kernel
def copy_string(source: UInt8s, start: int, stop: int, target: UInt8s, to: int) -> None:
    """Do the same where the source may end with the range."""
    if stop + COPY_MARGIN <= len(source):
        copy_bytes(source, start, stop, target, to)
        return
    for i in range(stop - start):
        target[to + i] = source[start + i]


@kernel
def take_strings(strings: Spans, rows: Int64s) -> tuple[Int32s, UInt8s, int]:
    """Copy some rows; return offsets and bytes, and how many: there are none where it were too many."""
    n_bytes = 0
    for row in rows:
        n_bytes += signed(strings.offsets[row + 1] - strings.offsets[row])
    offsets, data = np.zeros(len(rows) + 1, np.int32), buffer_for(n_bytes)
    to = 0
    for i in range(len(rows) if len(data) > 0 else 0):
        start, stop = signed(strings.offsets[rows[i]]), signed(strings.offsets[rows[i] + 1])
        copy_string(strings.data, start, stop, data, to)
        to += stop - start
        offsets[i + 1] = to
    return offsets, data, n_bytes


@kernel
def buffer_for(n_bytes: int) -> UInt8s:
    """Return a buffer for the bytes of one string array; what is too much for one gets none."""
    return np.empty(n_bytes + COPY_MARGIN if 0 <= n_bytes <= MOST_BYTES else 0, np.uint8)


def string_buffer(n_bytes: int) -> UInt8s:
    """Return such a buffer, or raise."""
    _check_fits(n_bytes)
    return buffer_for(n_bytes)


def string_array(offsets: Int32s, data: UInt8s, n_bytes: int, bits: UInt8s | None = None) -> pa.Array:
    """View offsets and bytes as an array of strings; ``bits`` say which are not null, if any is."""
    _check_fits(n_bytes)
    validity = None if bits is None else pa.py_buffer(bits)
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data[:n_bytes])]
    return pa.Array.from_buffers(_STRING, len(offsets) - 1, buffers)


def _check_fits(n_bytes: int) -> None:
    if n_bytes > MOST_BYTES:
        raise StateError(
            f"the strings of one batch must fit into {MOST_BYTES:,} bytes; "
            f"{n_bytes:,} were needed; use smaller batches"
        )
