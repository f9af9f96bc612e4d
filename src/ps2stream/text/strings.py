"""Arrow strings that kernels write: lengths first, then the bytes, eight at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int32s
from ps2stream.errors import StateError
from ps2stream.kernels import copy_word, kernel
from ps2stream.text.hashing import Bytes

#: How many bytes behind its end a copy may read and write.
ROOM = 8
_MOST_BYTES = (1 << 31) - 1


@kernel
def copy_bytes(source: Bytes, start: int, stop: int, target: Bytes, to: int) -> None:
    """Copy a stretch of bytes; what lies up to ``ROOM`` bytes behind it in the target is overwritten."""
    while start < stop:
        copy_word(target, to, source, start)
        start += 8
        to += 8


def room_for(n_bytes: int) -> Bytes:
    """Return a buffer for the bytes of one string array."""
    if n_bytes > _MOST_BYTES:
        raise StateError(
            f"the ids of one batch of matches must fit into {_MOST_BYTES:,} bytes; "
            f"{n_bytes:,} were needed; use smaller batches"
        )
    return np.empty(n_bytes + ROOM, np.uint8)


def string_array(offsets: Int32s, data: Bytes) -> pa.Array:
    """View offsets and bytes as an array of strings."""
    data = data[: int(offsets[-1])]
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
