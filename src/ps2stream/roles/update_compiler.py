"""The compiler of updates: expressions become clauses of hashed terms, before anything is decided."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Int64s
from ps2stream.arrow import array_of, concat, lists_of
from ps2stream.kernels import kernel
from ps2stream.model.events import check_updates, rejection
from ps2stream.model.schemas import SUBSCRIBE
from ps2stream.text.clauses import compile_spans
from ps2stream.text.tokenizer import Tokenizer

#: Updates with their expressions in normal form, no clauses where one unsubscribes; what remains is to decide
#: what they do.
COMPILED_UPDATES = pa.schema(
    [
        ("seq", pa.int64()),
        ("is_subscribe", pa.bool_()),
        ("id", pa.string()),
        ("expression", pa.string()),
        ("min_lon", pa.float64()),
        ("min_lat", pa.float64()),
        ("max_lon", pa.float64()),
        ("max_lat", pa.float64()),
        ("clauses", pa.large_list(pa.large_list(pa.uint64()))),
    ]
)


_CLAUSES = COMPILED_UPDATES.field("clauses").type
_CLAUSE = _CLAUSES.value_type


def compile_updates(batch: pa.RecordBatch, tokenizer: Tokenizer) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Check updates and parse their expressions; return (compiled, rejected)."""
    updates, rejected = check_updates(batch)
    compiled = compile_spans(updates.spans, tokenizer)
    # Those that unsubscribe have no expression, and no clauses.
    clause_offsets = np.empty(batch.num_rows - rejected.num_rows + 1, np.int64)
    spread(updates.begins, compiled.clause_offsets, clause_offsets)
    clauses = lists_of(_CLAUSE, compiled.term_offsets, array_of(compiled.terms, _CLAUSE.value_type))
    columns = [
        updates.seq,
        updates.is_subscribe,
        updates.ids,
        updates.expressions,
        *updates.corners,
        lists_of(_CLAUSES, clause_offsets, clauses),
    ]
    result = pa.RecordBatch.from_arrays(columns, schema=COMPILED_UPDATES)
    failed = {int(updates.begins[row]): reason for row, reason in compiled.errors.items()}
    if failed:
        keep = np.ones(result.num_rows, np.bool_)
        keep[list(failed)] = False
        rejected = concat([rejected, rejection(result, failed, op=SUBSCRIBE)])
        result = result.filter(pa.array(keep))
    return result, rejected


@kernel
def spread(rows: Int64s, offsets: Int64s, spread_offsets: Int64s) -> None:
    """Give the offsets of some rows to all rows; the others are empty."""
    at = 0
    for row in range(len(spread_offsets)):
        spread_offsets[row] = offsets[at]
        if at < len(rows) and rows[at] == row:
            at += 1
