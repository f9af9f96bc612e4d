"""A job's state on disk, and who may touch it when.

    state/
      job.json          the settings that its files depend on
      plans/            the routing plans that are or will be in use; the log says which are
      log/              the subscription log: with the stream itself, the only truth
      adjustments/      what load adjustment did, and why
      unchanged         the last batch that left the log as it was
      requests/         what others ask the running job to do
      index/            caches of the log, in mapped files: registry, routing, worker-000 ...
      checkpoint/       Spark's offsets
      lock              held by the running job

The registrar's indexes are built anew when a job starts. A worker's index is brought up to date
where a task needs it. It carries a mark: clean up to a batch, or dirty while somebody changes
it. A dirty one (its process was killed), a foreign one (another boot of the host: pages may not
have reached the disk) or a missing one is built again from the log.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ps2stream.arrays import MappedStorage
from ps2stream.arrow import pick
from ps2stream.config import Settings
from ps2stream.errors import StateError
from ps2stream.files import whole_file
from ps2stream.matching.contract import IndexSettings
from ps2stream.matching.index import GI2
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.model.space import Grid
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.index import Registry
from ps2stream.registry.log import SubscriptionLog
from ps2stream.registry.segments import BEGIN, SEGMENT, changes
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker import Worker
from ps2stream.routing.index import GridT
from ps2stream.routing.routing import PlanNumbers, Routing
from ps2stream.state.audit import AuditLog

FORMAT = 3
#: Settings that the files of a state depend on; a job cannot change them from one start to the next.
_FIXED = ("n_workers", "partitioner", "stop_words", "grid_bits", "max_cells")
BEFORE_ALL = -1


class State:
    """The state directory of one job."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = SubscriptionLog(directory / "log")
        self.adjustments = AuditLog(directory / "adjustments")
        self.checkpoint = directory / "checkpoint"
        self._index = directory / "index"

    @classmethod
    def exists(cls, directory: Path) -> bool:
        return (directory / "job.json").exists()

    @classmethod
    def create(cls, directory: Path, plan: Plan, settings: Settings) -> State:
        """Lay out a new state; job.json comes last and makes it valid."""
        state = cls(directory)
        directory.mkdir(parents=True, exist_ok=True)
        state.add_plan(plan)
        fixed = {name: asdict(settings)[name] for name in _FIXED}
        about = {"format": FORMAT, "job_id": uuid.uuid4().hex, "plan": plan.number, **fixed}
        with whole_file(directory / "job.json") as file:
            file.write(json.dumps(about, indent=2).encode())
        return state

    @classmethod
    def open(cls, directory: Path, settings: Settings) -> State:
        """Open an existing state and check that the settings fit it."""
        path = directory / "job.json"
        try:
            about = dict(json.loads(path.read_text()))
        except (OSError, ValueError, TypeError) as error:
            raise StateError(f"{path} cannot be read: {error}") from error
        if about.get("format") != FORMAT:
            raise StateError(f"{path} must have format {FORMAT}; got {about.get('format')}")
        for name in _FIXED:
            wanted = asdict(settings)[name]
            found = tuple(about[name]) if isinstance(about.get(name), list) else about.get(name)
            if found != wanted:
                raise StateError(
                    f"the state in {directory} was made with {name}={found!r}; got {wanted!r}. "
                    "Use the same settings, or another state directory"
                )
        return cls(directory)

    @property
    def job_id(self) -> str:
        """Return what tells this job from all others."""
        return str(json.loads((self.directory / "job.json").read_text())["job_id"])

    def routing(self) -> PlanNumbers:
        """Return by which plans the stream is routed after the last batch of the log."""
        routing = self.log.routing()
        if routing is not None:
            return routing
        first = int(json.loads((self.directory / "job.json").read_text())["plan"])
        return Routing(first)

    def plan(self, number: int | None = None) -> Plan:
        """Return a plan, the newest without a number; a process reads a file once, whoever asks for it."""
        path = self._plan_path(self.routing().newest if number is None else number)
        try:
            changed_ns = path.stat().st_mtime_ns
        except OSError as error:
            raise StateError(f"plan {path} cannot be read: {error}") from error
        return _load_plan(path, changed_ns)

    def add_plan(self, plan: Plan) -> None:
        """Write a plan; it comes into use with the first segment of the log that names it."""
        path = self._plan_path(plan.number)
        path.parent.mkdir(exist_ok=True)
        plan.save(path)

    def drop_plans(self) -> None:
        """Remove the plans that are not in use; call between batches."""
        in_use = {self._plan_path(number) for number in self.routing().parts}
        for path in self._plan_path(0).parent.glob("plan-*.npz"):
            if path not in in_use:
                path.unlink(missing_ok=True)

    def _plan_path(self, number: int) -> Path:
        return self.directory / "plans" / f"plan-{number:06}.npz"

    @contextlib.contextmanager
    def locked(self, patience_s: float = 1.0) -> Iterator[None]:
        """Hold the state for one job; the kernel lets go of it when the process ends, however it ends.

        ``patience_s``: who asks whether a job is running holds the lock for a moment, too.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + patience_s
        with (self.directory / "lock").open("a") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if time.monotonic() >= until:
                        raise StateError(
                            f"another job is running on the state in {self.directory}"
                        ) from error
                    time.sleep(0.05)
            yield

    def restore_registrar(self) -> Registrar:
        """Build the registrar's indexes from the log."""
        for kind in ("registry-*", "routing-*"):
            for path in self._index.glob(kind):
                shutil.rmtree(path, ignore_errors=True)
        plans = self.routing().map(self.plan)
        registrar = Registrar(plans.newest, self._storage)
        registrar.restore((segment for _, segment in self.log.read()), plans)
        return registrar

    def snapshot(self, batch_id: int, registrar: Registrar) -> None:
        """Replace the log up to a batch by the subscriptions that live after it, as they are stored."""
        segments = [changes(segment, BEGIN) for _, segment in self.log.read(upto=batch_id)]
        begun = pa.concat_batches([empty(SEGMENT), *segments])
        live = pick(begun, registrar.registry.are_live(begun.column("seq_from").to_numpy()))
        self.log.snapshot(batch_id, registrar.as_stored(live), registrar.plan_numbers)

    def record_unchanged(self, batch_id: int) -> None:
        """Remember that a batch goes by the log as it is; run again, it may not be routed otherwise."""
        with whole_file(self._unchanged_path) as file:
            file.write(str(batch_id).encode())

    def last_decided(self) -> int:
        """Return the last batch whose updates and routing are settled, in the log or for lack of changes."""
        try:
            unchanged = int(self._unchanged_path.read_text())
        except FileNotFoundError:
            unchanged = BEFORE_ALL
        except (OSError, ValueError) as error:
            raise StateError(f"{self._unchanged_path} cannot be read: {error}") from error
        return max(self.log.last(), unchanged)

    @property
    def _unchanged_path(self) -> Path:
        return self.directory / "unchanged"

    def record_progress(self, batch_id: int, last_seq: int) -> None:
        """Remember the last seq of a batch; the one before is kept in case the batch runs again."""
        progress = {str(batch_id): last_seq, str(batch_id - 1): self.last_seq(batch_id - 1)}
        with whole_file(self.directory / "progress.json") as file:
            file.write(json.dumps(progress).encode())

    def last_seq(self, batch_id: int | None = None) -> int:
        """Return the last seq of all batches, or of those up to one, as far as it is known."""
        try:
            progress = json.loads((self.directory / "progress.json").read_text())
        except (OSError, ValueError):
            return BEFORE_ALL_SEQS
        known = (seq for batch, seq in progress.items() if batch_id is None or int(batch) <= batch_id)
        return max(known, default=BEFORE_ALL_SEQS)

    def write_status(self, status: dict[str, Any]) -> None:
        """Leave word of what the job is like now; nothing depends on it."""
        staged = self._status_path.with_suffix(".new")
        with contextlib.suppress(OSError):  # a full disk is told by those who cannot do without it
            staged.write_text(json.dumps(status))
            staged.replace(self._status_path)

    def forget_status(self) -> None:
        self._status_path.unlink(missing_ok=True)

    def read_status(self) -> dict[str, Any] | None:
        """Return the last word of a job; None where there is none yet."""
        try:
            return dict(json.loads(self._status_path.read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise StateError(f"{self._status_path} cannot be read: {error}") from error

    def is_running(self) -> bool:
        """Say whether a job holds the state now."""
        try:
            with self.locked(patience_s=0.0):
                return False
        except StateError:
            return True

    def request_repartition(self) -> None:
        """Ask the job to consider a new plan; whoever asks again before it has looked changes nothing."""
        self._request_path.parent.mkdir(exist_ok=True)
        self._request_path.touch()

    def take_request(self) -> bool:
        """Say whether a new plan was asked for, and consider that answered."""
        try:
            self._request_path.unlink()
        except FileNotFoundError:
            return False
        return True

    @property
    def _request_path(self) -> Path:
        return self.directory / "requests" / "repartition"

    @property
    def _status_path(self) -> Path:
        return self.directory / "status.json"

    def open_registry(self, name: str) -> Registry:
        return Registry.open(self._storage(name))

    def open_grid_t(self, plan: Plan, name: str) -> GridT:
        return GridT.open(plan, self._storage(name))

    def drop_index(self, name: str) -> None:
        """Remove an index of the registrar that has been replaced."""
        shutil.rmtree(self._index / name, ignore_errors=True)

    @contextlib.contextmanager
    def worker(
        self, worker_id: int, settings: IndexSettings, batch_id: int, horizon: int
    ) -> Iterator[Worker[GI2]]:
        """Lend a worker whose index has seen all updates up to a batch.

        Nobody else touches the index meanwhile: a task that Spark gave up on may still run.
        """
        home = WorkerHome(self._index / f"worker-{worker_id:03}")
        with home.locked():
            index, applied, seen = home.open(settings)
            base = self.log.base()
            if seen < base:  # what it has not seen is only left in the snapshot
                index, applied = home.rebuild(settings), BEFORE_ALL
            else:
                applied = max(applied, base)
            worker = Worker(worker_id, index)
            pending = list(self.log.read(after=applied, upto=batch_id))
            home.mark_dirty()
            for _, segment in pending:
                worker.update(segment)
            if worker.index.should_compact():
                worker.index = home.replace(worker.index, horizon)
            yield worker
            # Only what was there is applied: a batch that changed nothing, and dies, may come again with
            # an adjustment before it.
            applied = max([applied, *(number for number, _ in pending)])
            home.mark_clean(applied, max(seen, batch_id), settings.counters)

    def _storage(self, name: str) -> MappedStorage:
        return MappedStorage(self._index / name)


@functools.lru_cache(maxsize=4)
def _load_plan(path: Path, changed_ns: int) -> Plan:
    return Plan.load(path)


class WorkerHome:
    """The directory of one worker's index: arrays, mark and lock."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._arrays = directory / "arrays"
        self._mark = directory / "clean"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        self._directory.mkdir(parents=True, exist_ok=True)
        with (self._directory / "lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def open(self, settings: IndexSettings) -> tuple[GI2, int, int]:
        """Return the index, the last batch of the log that is in it and the last one it was used for.

        It is empty where it cannot be trusted.

        Where the plan has another grid than it had before, the index is counted in that from now on.
        """
        try:
            boot, applied, seen, grid = self._mark.read_text().split()
            if boot == _boot_id():
                counters = _grid_of(grid)
                index = GI2.open(replace(settings, counters=counters), MappedStorage(self._arrays))
                if counters != settings.counters:
                    self.mark_dirty()
                    index = index.counted_in(settings.counters)
                return index, int(applied), int(seen)
        except (OSError, ValueError, OverflowError, StateError):
            pass
        return self.rebuild(settings), BEFORE_ALL, BEFORE_ALL

    def rebuild(self, settings: IndexSettings) -> GI2:
        """Begin with an empty index."""
        self.mark_dirty()
        shutil.rmtree(self._arrays, ignore_errors=True)
        return GI2.create(settings, MappedStorage(self._arrays))

    def replace(self, index: GI2, horizon: int) -> GI2:
        """Compact the index into new files; the caller has marked it dirty."""
        staged = self._directory / "compacted"
        shutil.rmtree(staged, ignore_errors=True)
        compacted = index.compacted(horizon, MappedStorage(staged))
        shutil.rmtree(self._arrays)
        staged.rename(self._arrays)
        return compacted.moved(MappedStorage(self._arrays))

    def mark_dirty(self) -> None:
        self._mark.unlink(missing_ok=True)

    def mark_clean(self, applied: int, seen: int, counters: Grid) -> None:
        # Not synced: after a crash of the host the boot id differs and the index is not trusted.
        staged = self._mark.with_suffix(".new")
        staged.write_text(f"{_boot_id()} {applied} {seen} {_text_of(counters)}")
        staged.replace(self._mark)


def _text_of(grid: Grid) -> str:
    return ",".join([*(float(each).hex() for each in grid[:-1]), str(grid.bits)])


def _grid_of(text: str) -> Grid:
    *sides, bits = text.split(",")
    min_lon, min_lat, columns, rows = map(float.fromhex, sides)
    return Grid(min_lon, min_lat, columns, rows, int(bits))


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        # Elsewhere than on Linux an index is not trusted by another session than the one that made it.
        return f"session-{os.getsid(0)}"
