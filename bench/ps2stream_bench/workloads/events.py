"""Rows of events: the columns that an operation has, nulls for the others."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Int64s
from ps2stream.model.schemas import EVENTS


def events_of(columns: dict[str, pa.Array], n: int) -> pa.Table:
    """Make ``n`` events of the columns that an operation has."""
    filled = [columns.get(field.name, pa.nulls(n, field.type)) for field in EVENTS]
    return pa.Table.from_arrays(filled, schema=EVENTS)


def numbered(prefix: str, numbers: Int64s) -> pa.Array:
    """Make ids of a prefix and a number."""
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")
