"""Plain JSON objects, many of them read at once by Arrow's own reader.

It takes a microsecond for each; one by one, by the rules of ``model/records.py``, they take eight. What it
cannot take, or would read differently, is for the caller to read by those rules: whatever is returned here is
what they come to, value by value.

Arrow makes no difference between a field that is null and one that is missing. The rules do, for two fields
of updates: there the text is asked whether a field stands in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ps2stream.arrays import Float64s
from ps2stream.model.records import CORNERS
from ps2stream.model.schemas import PLACED_PUBLICATIONS, SUBSCRIBE, UNSUBSCRIBE, UPDATES

_MAX_BLOCK_BYTES = 1 << 28
#: Python's reader of JSON refuses numbers of more digits, and nests no deeper than some hundred levels.
_MAX_VALUE_BYTES = 4_000
_MAX_BRACKETS = 200

#: Their "type" must be missing: it is what makes GeoJSON.
_PUBLICATIONS = pa.schema(
    [*(field for field in PLACED_PUBLICATIONS if field.name != "seq"), ("type", pa.string())]
)
_UPDATES = pa.schema(
    [
        *(field for field in UPDATES if field.name != "seq"),
        ("region", pa.list_(pa.float64())),
        ("type", pa.string()),
    ]
)
_PARSE_PUBLICATIONS, _PARSE_UPDATES = (
    pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    for schema in (_PUBLICATIONS, _UPDATES)
)
_BARE_UPDATES = pa.schema([field for field in UPDATES if field.name != "seq"])
_SUBSCRIBE, _UNSUBSCRIBE = pa.scalar(SUBSCRIBE), pa.scalar(UNSUBSCRIBE)
_NO_EXPRESSION = pa.scalar(None, pa.string())


def may_be_plain(value: bytes) -> bool:
    """Say whether a value can be nothing but objects, and is worth a try.

    Between a bracket that closes and one that opens no JSON goes on: where such values are joined, rows end,
    and as many rows as values are one of each.
    """
    if not (value.startswith(b"{") and value.endswith(b"}")) or b'"type"' in value:
        return False
    return len(value) <= _MAX_BRACKETS or (
        len(value) <= _MAX_VALUE_BYTES and value.count(b"[") + value.count(b"{") <= _MAX_BRACKETS
    )


def may_all_be_plain(values: Sequence[bytes | None]) -> bool:
    """Say the same of most batches without a look at each value: they are short, and have a line each."""
    written = [value for value in values if value is not None]
    block = b"\n".join(written)
    n = len(values)
    return (
        len(written) == n
        and block.startswith(b"{")
        and block.endswith(b"}")
        and n - 1 == block.count(b"\n") == block.count(b"}\n{")
        and b'"type"' not in block
        and max(map(len, written)) <= _MAX_BRACKETS
    )


def read_publications(values: list[bytes]) -> pa.RecordBatch | None:
    """Read values that may be plain, with the columns of PLACED_PUBLICATIONS but seq; None if one is not."""
    rows = _read(b"\n".join(values), len(values), _PARSE_PUBLICATIONS)
    if rows is None or not all(_are_as_python_reads(rows.column(name)) for name in ("lat", "lon")):
        return None
    return rows


def read_updates(values: list[bytes]) -> pa.RecordBatch | None:
    """Read values that may be plain, with the columns of UPDATES but seq; None if one is not."""
    block = b"\n".join(values)
    rows = _read(block, len(values), _PARSE_UPDATES)
    if rows is None or not all(_is_null_where_missing(rows, name, block) for name in ("op", "region")):
        return None
    ops, ids, expressions = (rows.column(name) for name in ("op", "id", "expression"))
    ends = pc.equal(ops, _UNSUBSCRIBE)
    n_ends = ends.true_count
    if n_ends + pc.equal(ops, _SUBSCRIBE).true_count + ops.null_count != len(values):
        return None  # another operation
    if ids.null_count and pc.and_(ends, ids.is_null()).true_count:
        return None
    corners = _corners_of(rows)
    if corners is None:
        return None
    if n_ends:  # of these nothing but the id is taken
        ends = ends.fill_null(False) if ends.null_count else ends
        expressions = pc.if_else(ends, _NO_EXPRESSION, expressions)
        corners[ends.to_numpy(zero_copy_only=False)] = np.nan
    is_null = np.isnan(corners)
    columns = [
        ops.fill_null(_SUBSCRIBE) if ops.null_count else ops,
        ids,
        expressions,
        *(pa.array(corners[:, i], mask=is_null[:, i]) for i in range(4)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_BARE_UPDATES)


def _read(block: bytes, n: int, parsing: pj.ParseOptions) -> pa.RecordBatch | None:
    """Read ``n`` objects, one a line; None where one of them is something else."""
    # Arrow's reader ends at a zero, and takes strings that are no UTF-8.
    if len(block) > _MAX_BLOCK_BYTES or b"\0" in block or not _is_utf8(block):
        return None
    reading = pj.ReadOptions(use_threads=False, block_size=len(block) + 1)
    try:
        # Not read_json, which hands the block to another thread and waits for it.
        with pj.open_json(pa.BufferReader(block), reading, parsing) as reader:
            rows = reader.read_next_batch()
    except (pa.ArrowException, StopIteration):
        return None
    is_plain = rows.num_rows == n and rows.column("type").null_count == n
    return rows if is_plain else None


def _is_utf8(block: bytes) -> bool:
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _is_null_where_missing(rows: pa.RecordBatch, name: str, block: bytes) -> bool:
    """Say whether a field stands nowhere in the text but where it has a value."""
    n_null = rows.column(name).null_count
    if not n_null:
        return True
    # Each value that there is has its name once: a name more is one of a null, or of something else.
    if block.count(f'"{name}"'.encode()) != rows.num_rows - n_null:
        return False
    # A letter of a name may be written by its number.
    return b"\\u00" not in block or (b"\\u006" not in block and b"\\u007" not in block)


def _corners_of(rows: pa.RecordBatch) -> Float64s | None:
    """Return the regions of updates, a row each, with nan for what is missing; None for those that are none.

    Where there is a ``region`` it counts, and single corners do not.
    """
    corners = np.full((rows.num_rows, 4), np.nan)
    for i, name in enumerate(CORNERS):
        column = rows.column(name)
        if column.null_count < rows.num_rows:
            if not _are_as_python_reads(column):
                return None
            corners[:, i] = column.to_numpy(zero_copy_only=False)
    regions = rows.column("region")
    n_regions = rows.num_rows - regions.null_count
    if not n_regions:
        return corners
    numbers, offsets = regions.values, regions.offsets.to_numpy()
    is_box = offsets[1:] - offsets[:-1] == 4  # Arrow puts nothing under a null; boxes with altitudes are rare
    if len(numbers) != 4 * n_regions or np.count_nonzero(is_box) != n_regions:
        return None
    if numbers.null_count or not _are_as_python_reads(numbers):
        return None
    corners[is_box] = numbers.to_numpy().reshape(-1, 4)
    return corners


def _are_as_python_reads(numbers: pa.Array) -> bool:
    """Say whether numbers are as Python reads them: to it -0 is 0, and hundreds of digits are no number."""
    values = numbers.drop_null().to_numpy() if numbers.null_count else numbers.to_numpy()
    is_zero = values == 0
    return bool(np.isfinite(values).all()) and not (is_zero.any() and np.signbit(values[is_zero]).any())
