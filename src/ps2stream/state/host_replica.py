"""What a host has of the registrar's indexes where the registrar is on another: H2 of its plans, and names.

It is a cache of the log in mapped files, shared by all Python processes of the host, and goes on from where
it is: with every batch it takes in what began. Whoever needs it first brings it up to the batch; the others
find it there. It is built anew from the log where it cannot be trusted (no mark, another boot, files cut
short), where the plans are others than it has (load adjustment is rare), where of what it lacks the log has
the snapshot only, and where much of it has ended: what ends is not taken out, since H2 may hold too much.

A new one is built in a directory of its own, and the one before it is removed. A task that Spark gave up on
may still read that: its files stay as they are until it lets go of them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from ps2stream.arrays import MappedStorage
from ps2stream.errors import StateError
from ps2stream.files import locked
from ps2stream.registry.index import Registry
from ps2stream.registry.log import SubscriptionLog
from ps2stream.roles.registrar import REGISTRY_NAME, ROUTING_NAMES, Registrar, follow
from ps2stream.routing.index import GridT
from ps2stream.routing.routing import PlanNumbers, Routing
from ps2stream.state.plans import Plans
from ps2stream.state.worker_home import boot_id


class Replica(NamedTuple):
    """What dispatchers and mergers of a host read."""

    grid_ts: Routing[GridT]
    registry: Registry


class _Mark(NamedTuple):
    """What the files hold: up to which batch, by which plans, and in which directory."""

    upto: int
    routing: PlanNumbers
    directory: str


@dataclass(frozen=True, slots=True)
class HostReplica:
    """The replica of one host; any process of the host may bring it up to date."""

    directory: Path
    log: SubscriptionLog
    plans: Plans

    def at(self, batch_id: int, routing: PlanNumbers) -> Replica:
        """Return what was decided up to a batch, which is routed by some plans."""
        with locked(self.directory):
            mark = self._read_mark()
            if mark is None or mark.upto < batch_id or mark.routing != routing:
                mark = self._brought_to(mark, batch_id, routing)
            return self._opened(mark, shared=False)

    def _brought_to(self, mark: _Mark | None, batch_id: int, routing: PlanNumbers) -> _Mark:
        if mark is not None and mark.routing == routing and mark.upto >= self.log.base():
            with contextlib.suppress(StateError):  # files cut short
                replica = self._opened(mark, shared=True)
                # Read before the mark goes: a log that cannot be read costs no replica.
                segments = [segment for _, segment in self.log.read(after=mark.upto, upto=batch_id)]
                if not replica.registry.should_compact():
                    self._drop_mark()
                    for segment in segments:
                        follow(replica.registry, replica.grid_ts.newest, segment)
                    return self._marked(mark._replace(upto=batch_id))
        return self._built(batch_id, routing)

    def _built(self, batch_id: int, routing: PlanNumbers) -> _Mark:
        """Build a replica from the log; the one before goes."""
        self._drop_mark()
        for path in self.directory.glob("replica-*"):
            shutil.rmtree(path, ignore_errors=True)
        mark = _Mark(batch_id, routing, f"replica-{uuid.uuid4().hex}")
        plans = routing.map(self.plans.get)
        registrar = Registrar(plans.newest, lambda name: self._storage(mark, name))
        registrar.restore((segment for _, segment in self.log.read(upto=batch_id)), plans)
        return self._marked(mark)

    def _opened(self, mark: _Mark, *, shared: bool) -> Replica:
        """Map a replica: to change it, or to read it."""
        names = dict(zip(mark.routing.parts, ROUTING_NAMES, strict=False))
        grid_ts = mark.routing.map(
            lambda number: GridT.open(
                self.plans.get(number), self._storage(mark, names[number]), shared=shared
            )
        )
        return Replica(grid_ts, Registry.open(self._storage(mark, REGISTRY_NAME), shared=shared))

    def _storage(self, mark: _Mark, name: str) -> MappedStorage:
        return MappedStorage(self.directory / mark.directory / name)

    @property
    def _mark_path(self) -> Path:
        return self.directory / "clean"

    def _read_mark(self) -> _Mark | None:
        """Return what is known of the files; None where they cannot be trusted."""
        try:
            said = json.loads(self._mark_path.read_text())
            if said["boot"] != boot_id():
                return None
            return _Mark(int(said["upto"]), Routing(**said["routing"]), str(said["directory"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _drop_mark(self) -> None:
        self._mark_path.unlink(missing_ok=True)

    def _marked(self, mark: _Mark) -> _Mark:
        # Not synced: after a crash of the host the boot id differs and nothing here is trusted.
        staged = self._mark_path.with_suffix(".new")
        said = {"boot": boot_id(), **mark._asdict(), "routing": asdict(mark.routing)}
        staged.write_text(json.dumps(said))
        staged.replace(self._mark_path)
        return mark
