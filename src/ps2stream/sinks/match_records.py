"""Matches as records: packets of Arrow, or a JSON object each with the id of the subscription as its key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrow import pick
from ps2stream.roles.packets import encode, fitting
from ps2stream.sinks.partitions import partitions_of

MatchFormat = Literal["arrow", "json"]


class MatchRecord(NamedTuple):
    """A record of the topic of matches."""

    partition: int
    value: bytes
    key: bytes | None = None


def match_records(
    pieces: Iterable[pa.RecordBatch], n_partitions: int, match_format: MatchFormat = "arrow"
) -> Iterator[MatchRecord]:
    """Divide matches (schema MATCHES) by the ids of their subscriptions."""
    for piece in pieces:
        partitions = partitions_of(piece.column("subscription_id"), n_partitions)
        if match_format == "json":
            for row, partition in zip(piece.to_pylist(), partitions.tolist(), strict=True):
                yield MatchRecord(partition, json.dumps(row).encode(), row["subscription_id"].encode())
        else:
            for partition in np.unique(partitions).tolist():
                rows = pick(piece, partitions == partition)
                yield from (MatchRecord(partition, encode(part)) for part in fitting(rows))
