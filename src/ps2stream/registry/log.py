"""The subscription log: the truth that every index is a cache of.

One Arrow file for each batch that changed subscriptions, and at times a snapshot that stands for
everything up to its batch. Each also says by which plans the stream is routed from its batch on, so that a
change of plan and the moves it asks for take effect together. A file is whole and has survived before
anybody sees it (``store/``). Whoever needs an index up to date reads on from the batch it has; whoever finds
that part gone starts from the snapshot.

    snapshot-000000000120.arrow  batch-000000000121.arrow  batch-000000000124.arrow
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict

import pyarrow as pa

from ps2stream.errors import StateError
from ps2stream.registry.segments import SEGMENT
from ps2stream.routing.routing import PlanNumbers, Routing
from ps2stream.store.contract import Store

_ROUTING = b"routing"
_NAME = re.compile(r"(snapshot|batch)-(\d{12})\.arrow")


class SubscriptionLog:
    """Write and read segments; one writer, any number of readers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, batch_id: int, segment: pa.RecordBatch, routing: PlanNumbers) -> None:
        """Add the segment of a batch; on return it is on disk."""
        self._write(f"batch-{batch_id:012}.arrow", segment, routing)

    def snapshot(self, batch_id: int, live: pa.RecordBatch, routing: PlanNumbers) -> None:
        """Replace everything up to a batch by what is alive after it."""
        self._write(f"snapshot-{batch_id:012}.arrow", live, routing)
        for kind, number, key in self._files():
            if number < batch_id or (kind == "batch" and number == batch_id):
                self._store.delete(key)

    def base(self) -> int:
        """Return the batch of the newest snapshot, -1 without one."""
        return max((number for kind, number, _ in self._files() if kind == "snapshot"), default=-1)

    def last(self) -> int:
        """Return the newest batch that is covered, -1 when nothing is."""
        return max((number for _, number, _ in self._files()), default=-1)

    def read(self, after: int = -1, upto: int | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (batch, segment) in order; starts with the snapshot when ``after`` lies before it."""
        # One look at the store: a snapshot that comes meanwhile must not hide both sides of it.
        files = self._files()
        base = max((number for kind, number, _ in files if kind == "snapshot"), default=-1)
        for kind, number, key in sorted(files, key=lambda file: (file[1], file[0] == "batch")):
            wanted = number == base > after if kind == "snapshot" else number > max(after, base)
            if wanted and (upto is None or number <= upto):
                yield number, self._read(key)

    def routing(self) -> PlanNumbers | None:
        """Return by which plans the stream is routed after the newest batch; None while the log is empty."""
        newest = max(self._files(), key=lambda file: file[1], default=None)
        if newest is None:
            return None
        _, schema = self._open(newest[2])
        try:
            return Routing(**json.loads(schema.metadata[_ROUTING]))
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"subscription log {self._store.location(newest[2])} does not say by which plan it is routed"
            ) from error

    def _files(self) -> list[tuple[str, int, str]]:
        """List what there is: kind, batch and key."""
        found = ((_NAME.fullmatch(key), key) for key in self._store.list())
        return [(match[1], int(match[2]), key) for match, key in found if match]

    def _write(self, key: str, segment: pa.RecordBatch, routing: PlanNumbers) -> None:
        schema = SEGMENT.with_metadata({_ROUTING: json.dumps(asdict(routing)).encode()})
        with self._store.writer(key) as file, pa.ipc.new_file(file, schema) as writer:
            writer.write_batch(segment)

    def _read(self, key: str) -> pa.RecordBatch:
        segment, _ = self._open(key)
        return segment

    def _open(self, key: str) -> tuple[pa.RecordBatch, pa.Schema]:
        try:
            segment = pa.ipc.open_file(self._store.get(key)).get_batch(0)
            if segment.schema != SEGMENT:
                raise ValueError(f"its columns must be {SEGMENT.names}; got {segment.schema.names}")
        except (StateError, ValueError, pa.ArrowException) as error:
            raise StateError(f"subscription log {self._store.location(key)} is damaged: {error}") from error
        return segment.replace_schema_metadata(None), segment.schema
