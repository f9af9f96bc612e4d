"""The border between Arrow strings and kernels: one flat buffer of bytes plus offsets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s
from ps2stream.text.hashing import Bytes


class Spans(NamedTuple):
    """Row ``i`` is the bytes ``data[offsets[i]:offsets[i + 1]]``; both arrays are read-only."""

    data: Bytes
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


def _read_only(data: Bytes, offsets: Int64s) -> Spans:
    # A kernel is compiled once per kind of argument, and to numba a writeable array is another
    # kind: without this, a buffer that Arrow happens to own as mutable would compile it all again.
    data.setflags(write=False)
    offsets.setflags(write=False)
    return Spans(data, offsets)
