"""The Arrow schemas of every border, one constant each."""

from __future__ import annotations

import functools

import pyarrow as pa

PUBLISH = "publish"
SUBSCRIBE = "subscribe"
UNSUBSCRIBE = "unsubscribe"
OPERATIONS = (PUBLISH, SUBSCRIBE, UNSUBSCRIBE)

#: A seq lies between these two: nothing comes before the one, and the other stands for "never".
BEFORE_ALL_SEQS, AFTER_ALL_SEQS = -(1 << 63), (1 << 63) - 1

#: An ordered event log, as `ps2stream replay` reads it and the journal keeps it.
EVENTS = pa.schema(
    [
        ("seq", pa.int64()),
        ("op", pa.string()),
        ("id", pa.string()),
        ("lat", pa.float64()),
        ("lon", pa.float64()),
        ("text", pa.string()),
        ("expression", pa.string()),
        ("min_lon", pa.float64()),
        ("min_lat", pa.float64()),
        ("max_lon", pa.float64()),
        ("max_lat", pa.float64()),
    ]
)

#: Events of a DataFrame whose order the job settles itself.
EVENTS_WITHOUT_SEQ = pa.schema([field for field in EVENTS if field.name != "seq"])

#: Publications on their own, as packets carry them.
PUBLICATIONS = pa.schema([EVENTS.field(name) for name in ("seq", "id", "lat", "lon", "text")])

#: Publications that may say where in the order they want to be: after a seq, or as of it.
PLACED_PUBLICATIONS = pa.schema([*PUBLICATIONS, ("after", pa.int64()), ("as_of", pa.int64())])

#: Subscribe and unsubscribe events on their own, and what has no known operation.
UPDATES = pa.schema(
    [
        EVENTS.field(name)
        for name in ("seq", "op", "id", "expression", "min_lon", "min_lat", "max_lon", "max_lat")
    ]
)

#: What a subscriber receives; (subscription_id, subscription_seq, publication_id) is the match id.
MATCHES = pa.schema(
    [
        ("subscription_id", pa.string()),
        ("subscription_seq", pa.int64()),
        ("publication_id", pa.string()),
        ("publication_seq", pa.int64()),
    ]
)

#: What could not be processed, and why.
REJECTED = pa.schema(
    [
        ("seq", pa.int64()),
        ("op", pa.string()),
        ("id", pa.string()),
        ("reason", pa.string()),
    ]
)


@functools.cache
def empty(schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch without rows; to make one takes longer than most of what is done with it."""
    return pa.RecordBatch.from_pylist([], schema=schema)
