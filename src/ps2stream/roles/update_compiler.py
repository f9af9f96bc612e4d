"""The compiler of updates: expressions become clauses of hashed terms, before anything is decided."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.arrow import concat, large_lists
from ps2stream.model.events import check_updates, rejection
from ps2stream.model.schemas import SUBSCRIBE
from ps2stream.text.clauses import compile_expressions
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


def compile_updates(batch: pa.RecordBatch, tokenizer: Tokenizer) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Check updates and parse their expressions; return (compiled, rejected)."""
    updates, rejected = check_updates(batch)
    # Those that unsubscribe have no expression, and no clauses.
    begins = np.flatnonzero(updates.is_subscribe)
    compiled = compile_expressions(updates.expressions.drop_null(), tokenizer)
    clause_offsets = np.zeros(len(updates.seq) + 1, np.int64)
    clause_offsets[begins + 1] = compiled.clause_offsets[1:] - compiled.clause_offsets[:-1]
    np.cumsum(clause_offsets, out=clause_offsets)
    bounds = updates.bounds.reshape(-1, 4)
    columns = [
        pa.array(updates.seq),
        pa.array(updates.is_subscribe),
        updates.ids,
        updates.expressions,
        *(pa.array(bounds[:, i]) for i in range(4)),
        large_lists(pa.array(compiled.terms), compiled.term_offsets, clause_offsets),
    ]
    result = pa.RecordBatch.from_arrays(columns, schema=COMPILED_UPDATES)
    failed = {int(begins[row]): reason for row, reason in compiled.errors.items()}
    if failed:
        keep = np.ones(result.num_rows, np.bool_)
        keep[list(failed)] = False
        rejected = concat([rejected, rejection(result, failed, op=SUBSCRIBE)])
        result = result.filter(pa.array(keep))
    return result, rejected
