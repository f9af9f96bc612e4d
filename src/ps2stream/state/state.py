"""The state of one job: its parts, put together, and what takes several of them."""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from ps2stream.config import Settings
from ps2stream.errors import StateError
from ps2stream.files import AnyPath, absolute
from ps2stream.partitioning.plan import Plan
from ps2stream.registry.index import Registry
from ps2stream.registry.log import FIXED_FILES, SubscriptionLog, is_covered
from ps2stream.registry.manifest import Manifest
from ps2stream.roles.living import Living
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.worker_host import Standing
from ps2stream.routing.index import GridT
from ps2stream.routing.routing import PlanNumbers, Routing
from ps2stream.state.audit import AuditLog
from ps2stream.state.epochs import Epochs
from ps2stream.state.host_files import HostFiles
from ps2stream.state.host_replica import HostReplica
from ps2stream.state.job_file import JobFile
from ps2stream.state.lease import Lease
from ps2stream.state.ledger import BEFORE_ALL, Ledger
from ps2stream.state.mailbox import Mailbox
from ps2stream.state.mapped_host import MappedHost
from ps2stream.state.plans import FIXED_PLANS, Plans, is_below
from ps2stream.store.contract import Store, delete_all
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.host_cache import CachedStore


class Known(NamedTuple):
    """What a driver tells the tasks of a batch, which would have to ask the store otherwise.

    Up to which batch all is decided, and which files of the log, and whose plans, count for it. Both are
    facts that stay true, so a task that is late is told nothing wrong; whether it is late, it has to ask.
    """

    decided: int
    manifest: Manifest


_SPOOLS = "spool"


@dataclass(frozen=True, slots=True)
class State:
    """What a job keeps in a store and on this host; a process may send it to another of the host.

    ``epoch``: whose view of the store it is (``epochs.py``); 0 where drivers share a host, and its lock.
    ``on_many_hosts``: whoever gets it elsewhere has files of a host of its own, and finds them by ``here``.
    ``job_id``: whose these are; known of a state elsewhere when it is open.
    ``known``: what a task was told with its batch.
    """

    store: Store
    host: HostFiles
    epoch: int = 0
    on_many_hosts: bool = False
    job_id: str = ""
    known: Known | None = None

    @classmethod
    def at(cls, directory: AnyPath) -> State:
        """Return the state in a directory of this host, which need not exist yet."""
        directory = absolute(directory)
        return cls(DirectoryStore(directory), HostFiles(directory))

    @classmethod
    def among_hosts(cls, store: Store) -> State:
        """Return the state in a store that many hosts reach; each has files of its own."""
        return cls(store, HostFiles.of(store.location()), on_many_hosts=True)

    def here(self) -> State:
        """Return the state as the process that asks has it, wherever it runs."""
        if not self.on_many_hosts:
            return self
        return replace(self, host=HostFiles.of(self.store.location(), self.job_id))

    @property
    def job_file(self) -> JobFile:
        return JobFile(self.store)

    @property
    def plans(self) -> Plans:
        epochs = self.log.manifest().plan_epochs if self.epoch else {}
        return Plans(self._kept_here("plans", FIXED_PLANS), self.epoch, epochs)

    @property
    def log(self) -> SubscriptionLog:
        """Return the log; for a task, as it was when the driver decided on the batch."""
        return self._log(self.known.manifest if self.known else None)

    @property
    def ledger(self) -> Ledger:
        """Return the ledger, with the log as it is in the store at every look."""
        return Ledger(
            self.store, self._log(None), self.epoch, self.known.decided if self.known else BEFORE_ALL
        )

    def _log(self, known: Manifest | None) -> SubscriptionLog:
        return SubscriptionLog(self._kept_here("log", FIXED_FILES), self.epoch, known)

    def _kept_here(self, name: str, fixed: re.Pattern[str]) -> Store:
        """Return a part of the store; where it is elsewhere, this host keeps what is written once."""
        part, blobs = self.store.under(name), self.host.blobs
        return CachedStore(part, blobs.under(name), fixed) if self.epoch and blobs else part

    @property
    def adjustments(self) -> AuditLog:
        return AuditLog(self.store.under("adjustments"), self.epoch, self.ledger.epoch_of)

    @property
    def resident_adjustments(self) -> AuditLog:
        """Return the audit log of resident roles, who number adjustments over all starts of their job."""
        return AuditLog(self.store.under("adjustments"))

    @property
    def mailbox(self) -> Mailbox:
        return Mailbox(self.store, self.epoch)

    def told(self, decided: int) -> State:
        """Return the state for the tasks of a batch, of which all up to a batch is decided.

        On one host nothing is to be gained: files are mapped where they are.
        """
        if not self.epoch:
            return self
        return replace(self, known=Known(decided, self.log.manifest()))

    def check_newest(self, batch_id: int) -> None:
        """Raise unless a task of a batch may still write what it found; call it after matching.

        A later batch of this driver, or any of a later one, may have brought indexes of the host beyond this
        batch. These are the reads that are for safety: each asks the store, whatever the task was told.
        """
        self.ledger.check_newest(batch_id)
        self.check_epoch()

    def drop_old_blobs(self) -> None:
        """Remove what this host keeps of files that the log and its plans have no use for any more."""
        if self.epoch and self.host.blobs:
            base, plans = self.log.base(), self.log.manifest().plan_epochs
            self.host.blobs.under("log").drop_where(lambda key: is_covered(key, base))
            if plans:
                self.host.blobs.under("plans").drop_where(lambda key: is_below(key, min(plans)))

    def taken_over(self, lease: Lease) -> State:
        """Return the state as the holder of a lease writes it; it begins as that of the epoch before stands.

        Call with every claim, before anything else; ``self`` is the state without a fence.
        """
        mine = replace(self, store=lease.fenced(), epoch=lease.epoch)
        before = self._newest_begun(lease.epoch - 1)
        manifest = before.log.manifest()
        mine.ledger.take_over(before.ledger, manifest.last)
        mine.log.begin(manifest)  # the last step: with its manifest the epoch has begun
        return mine

    def newest(self) -> State:
        """Return the state as the newest driver has it: what readers should look at."""
        return self._newest_begun(Epochs(self.store.under("epochs")).newest())

    def _newest_begun(self, epoch: int) -> State:
        """Return the newest state up to an epoch; a driver that died while it took over has left none."""
        for each in range(epoch, 0, -1):
            state = replace(self, epoch=each)
            if state.log.has_manifest():
                return state
        return replace(self, epoch=0)

    def create(self, plan: Plan, settings: Settings, *, numbers_events: bool = False) -> State:
        """Lay out a new state; the job file comes last and makes it valid."""
        self.plans.add(plan)
        self.job_file.create(settings, plan.number, self.epoch, numbers_events=numbers_events)
        return self

    def check_epoch(self) -> None:
        """Raise if another driver has taken over, where that can be."""
        if self.epoch:
            Epochs(self.store.under("epochs")).check(self.epoch)

    def open(self, settings: Settings, *, numbers_events: bool = False) -> State:
        """Check that there is a state and that settings, and the order of events, fit it; go on with it.

        Of a state elsewhere, the files of this host are those of its job from now on.
        """
        self.job_file.check(settings)
        self.job_file.check_engine()
        self.job_file.check_order(numbers_events)
        if not self.epoch and Epochs(self.store.under("epochs")).newest():
            raise StateError(f"the state in {self.store.location()} has epochs: its driver needs a lease")
        if self.epoch:
            self.log.name_first_plan(self.job_file.first_plan, self.job_file.first_plan_epoch)
        if self.host != HostFiles.of(self.store.location()):
            return self
        job_id = self.job_file.job_id
        return replace(self, job_id=job_id, host=HostFiles.of(self.store.location(), job_id))

    def sweep(self) -> None:
        """Remove what killed writers left; call while holding the state."""
        for name in ("log", "plans", "adjustments"):
            self.store.under(name).sweep()
        self.store.sweep()
        # Up to this epoch nothing is spooled any more: every start of a job that shares a store has its own.
        self.host.drop_spools(before=self.epoch + 1)
        for key in self.store.list(_SPOOLS) if self.on_many_hosts else ():
            if key < f"{_SPOOLS}/{self.epoch + 1:08}":
                self.store.delete(key)

    def routing(self) -> PlanNumbers:
        """Return by which plans the stream is routed after the last batch of the log."""
        routing = self.log.routing()
        if routing is not None:
            return routing
        return Routing(self.job_file.first_plan)

    def plan(self) -> Plan:
        """Return the newest plan that is in use."""
        return self.plans.get(self.routing().newest)

    def drop_plans(self) -> None:
        """Remove the plans that are not in use; call between batches."""
        self.plans.keep(self.routing().parts)

    def restore_registrar(self) -> Registrar:
        """Build the registrar's indexes from the log."""
        self.host.drop_all()
        plans = self.routing().map(self.plans.get)
        # A task that an earlier start of the job left behind must not find these by the names it knows.
        registrar = Registrar(plans.newest, self.host.storage, f"-{uuid.uuid4().hex[:8]}")
        registrar.restore((segment for _, segment in self.log.read()), plans)
        return registrar

    def snapshot(self, batch_id: int, registrar: Registrar) -> None:
        """Replace the log up to a batch by the subscriptions that live after it, as they are stored."""
        segments = [segment for _, segment in self.log.read(upto=batch_id)]
        self._write_snapshot(batch_id, registrar.living(), segments)

    def snapshot_beside(self, batch_id: int, living: Living, since: Sequence[pa.RecordBatch]) -> None:
        """Do the same while later batches are decided; ``since``: all segments from the last snapshot on.

        One at a time, and while no task of this driver reads the log: files go that it may have listed.
        """
        last = [segment for _, segment in self.log.read(upto=self.log.base())]
        self._write_snapshot(batch_id, living, [*last, *since])

    def _write_snapshot(self, batch_id: int, living: Living, segments: Sequence[pa.RecordBatch]) -> None:
        self.log.snapshot(batch_id, living.rows(segments), living.plan_numbers)

    def replica(self) -> HostReplica:
        """Return what this host has of the registrar's indexes, where that is on another."""
        return HostReplica(self.host.replica, self.log, self.plans)

    def spool(self, batch_id: int) -> Store:
        """Return where the events of a batch are spooled; nothing else is there.

        Each epoch has a place of its own: a driver that was taken over may still spool, and drop what it did.
        """
        if self.on_many_hosts:
            return self.store.under(f"{_SPOOLS}/{self.epoch:08}-{batch_id:012}")
        return DirectoryStore(self.host.spool(batch_id, self.epoch), durable=False)

    def drop_spool(self, batch_id: int) -> None:
        delete_all(self.spool(batch_id))
        shutil.rmtree(self.host.spool(batch_id, self.epoch), ignore_errors=True)

    def open_registry(self, name: str) -> Registry:
        return Registry.open(self.host.storage(name))

    def open_grid_t(self, plan: Plan, name: str) -> GridT:
        return GridT.open(plan, self.host.storage(name))

    def worker_host(self, worker_id: int, standing: Standing) -> MappedHost:
        """Let a worker stand at a batch that is decided."""
        return MappedHost(worker_id, standing, self.host.worker_home(worker_id), self.ledger, self.log)
