"""The subscription log: the truth that every index is a cache of.

One Arrow file for each batch that changed subscriptions, and at times a snapshot that stands for
everything up to its batch. Each also says by which plans the stream is routed from its batch on, so that a
change of plan and the moves it asks for take effect together. A file is whole and has survived before
anybody sees it (``store/``). Whoever needs an index up to date reads on from the batch it has; whoever finds
that part gone starts from the snapshot.

    snapshot-000000000120.arrow  batch-000000000121.arrow  batch-000000000124.arrow

Where one host writes (epoch 0), the files that are there are the log. Where drivers of several epochs may
write (``state/epochs.py``), names have the epoch in them, and those count that the manifest of the reader's
epoch names. It is found by its key: no listing has to be complete.

    batch-000000000121-00000003.arrow  manifest-00000003.json
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict

import pyarrow as pa

from ps2stream.errors import MissingError, StateError
from ps2stream.registry.manifest import BATCH, SNAPSHOT, File, Manifest
from ps2stream.registry.segments import SEGMENT
from ps2stream.routing.routing import PlanNumbers, Routing
from ps2stream.store.contract import Store

_ROUTING = b"routing"
_NAME = re.compile(r"(snapshot|batch)-(\d{12})\.arrow")
#: Files of epochs but 0: put once and for all.
FIXED_FILES = re.compile(r"(snapshot|batch)-(\d{12})-(\d{8})\.arrow")


class SubscriptionLog:
    """Write and read segments; one writer, any number of readers.

    ``known``: the manifest to read by, where a reader was told it and need not ask the store; nothing is
    written then.
    """

    def __init__(self, store: Store, epoch: int = 0, known: Manifest | None = None) -> None:
        self._store = store
        self._epoch = epoch
        self._known = known

    def append(self, batch_id: int, segment: pa.RecordBatch, routing: PlanNumbers) -> None:
        """Add the segment of a batch; on return it is on disk, and counts."""
        self._add((BATCH, batch_id, self._epoch), segment, routing)

    def snapshot(self, batch_id: int, live: pa.RecordBatch, routing: PlanNumbers) -> None:
        """Replace everything up to a batch by what is alive after it."""
        before = self._files()
        self._add((SNAPSHOT, batch_id, self._epoch), live, routing)
        over = [
            _key((kind, number, epoch))
            for kind, number, epoch in before
            if number < batch_id or (kind == BATCH and number == batch_id)
        ]
        self._store.delete(*over)

    def begin(self, manifest: Manifest) -> None:
        """Begin the epoch of this log with that of an earlier one."""
        self._put_manifest(manifest)

    def name_first_plan(self, number: int, epoch: int) -> None:
        """Note who made the plan that holds while the log is empty; no segment has named it yet."""
        manifest = self.manifest()
        if manifest.routing is None and manifest.plan_epochs != {number: epoch}:
            self._put_manifest(manifest._replace(plan_epochs={number: epoch}))

    def has_manifest(self) -> bool:
        """Say whether the epoch of this log has begun."""
        try:
            self._store.get(self._manifest_key)
        except MissingError:
            return False
        return True

    def manifest(self) -> Manifest:
        """Return which files count now, and the routing after them."""
        if self._known is not None:
            return self._known
        if not self._epoch:
            routing = self.routing()
            return Manifest(tuple(self._files()), routing, dict.fromkeys(routing.parts if routing else (), 0))
        try:
            return Manifest.from_json(bytes(self._store.get(self._manifest_key)))
        except (StateError, ValueError, KeyError, TypeError) as error:
            where = self._store.location(self._manifest_key)
            raise StateError(f"subscription log {where} cannot be read: {error}") from error

    def base(self) -> int:
        """Return the batch of the newest snapshot, -1 without one."""
        return Manifest(tuple(self._files())).base

    def last(self) -> int:
        """Return the newest batch that is covered, -1 when nothing is."""
        return Manifest(tuple(self._files())).last

    def span(self) -> tuple[int, int]:
        """Return both by one look: the batch of the newest snapshot, and the newest that is covered."""
        found = Manifest(tuple(self._files()))
        return found.base, found.last

    def read(self, after: int = -1, upto: int | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (batch, segment) in order; starts with the snapshot when ``after`` lies before it."""
        # One look at the store: a snapshot that comes meanwhile must not hide both sides of it.
        files = self._files()
        base = Manifest(tuple(files)).base
        for kind, number, epoch in sorted(files, key=lambda file: (file[1], file[0] == BATCH)):
            wanted = number == base > after if kind == SNAPSHOT else number > max(after, base)
            if wanted and (upto is None or number <= upto):
                yield number, self._read(_key((kind, number, epoch)))

    def routing(self) -> PlanNumbers | None:
        """Return by which plans the stream is routed after the newest batch; None while the log is empty."""
        if self._epoch or self._known:
            return self.manifest().routing
        newest = max(self._files(), key=lambda file: file[1], default=None)
        if newest is None:
            return None
        key = _key(newest)
        _, schema = self._open(key)
        try:
            return Routing(**json.loads(schema.metadata[_ROUTING]))
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"subscription log {self._store.location(key)} does not say by which plan it is routed"
            ) from error

    @property
    def _manifest_key(self) -> str:
        return f"manifest-{self._epoch:08}.json"

    def _files(self) -> list[File]:
        """List what counts: kind, batch and epoch."""
        if self._epoch or self._known:
            return list(self.manifest().files)
        found = map(_NAME.fullmatch, self._store.list())
        return [(match[1], int(match[2]), 0) for match in found if match]

    def _add(self, file: File, segment: pa.RecordBatch, routing: PlanNumbers) -> None:
        if self._known is not None:
            raise StateError(f"subscription log {self._store.location()} is only read by a known manifest")
        schema = SEGMENT.with_metadata({_ROUTING: json.dumps(asdict(routing)).encode()})
        if not self._epoch:
            with self._store.writer(_key(file)) as sink, pa.ipc.new_file(sink, schema) as writer:
                writer.write_batch(segment)
            return
        written = pa.BufferOutputStream()
        with pa.ipc.new_file(written, schema) as writer:
            writer.write_batch(segment)
        # Once and for all: a later epoch may have it in its manifest.
        if not self._store.put_if_absent(_key(file), written.getvalue().to_pybytes()):
            raise StateError(f"subscription log {self._store.location(_key(file))} must not be written again")
        self._put_manifest(self.manifest().added(file, routing))

    def _put_manifest(self, manifest: Manifest) -> None:
        self._store.put(self._manifest_key, manifest.to_json())

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


def is_covered(key: str, base: int) -> bool:
    """Say whether a file that is written once has no part in a log whose newest snapshot is of a batch."""
    name = FIXED_FILES.fullmatch(key)
    if name is None:
        return False
    kind, number = name[1], int(name[2])
    return number < base or (kind == BATCH and number == base)


def _key(file: File) -> str:
    kind, number, epoch = file
    return f"{kind}-{number:012}.arrow" if epoch == 0 else f"{kind}-{number:012}-{epoch:08}.arrow"
