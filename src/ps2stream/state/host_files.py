"""The files of a job that lie on the disk of the host which uses them; all can be made again.

Nobody else knows their paths. Where the state is elsewhere, its blobs that never change are kept, too, in a
directory that all states of the host share, and with it one limit: what is left of states that are gone falls
out of it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ps2stream.arrays import MappedStorage
from ps2stream.state.job_lock import JobLock
from ps2stream.state.worker_home import WorkerHome
from ps2stream.store.host_cache import HostCache


@dataclass(frozen=True, slots=True)
class HostFiles:
    """Mapped indexes, Spark's checkpoint, the spool and the lock below one directory.

    ``blobs``: what this host keeps of the blobs of a job elsewhere.
    """

    directory: Path
    blobs: HostCache | None = None

    @classmethod
    def of(cls, location: str, job_id: str = "") -> HostFiles:
        """Return the files that this host keeps for a state elsewhere, below ``PS2STREAM_LOCAL_DIR``.

        Whoever asks on this host, as the same user, gets the same. A state that was removed and made anew
        at its location is that of another job: it must not find the indexes and the checkpoint of the first,
        nor blobs of the same names.
        """
        given = os.environ.get("PS2STREAM_LOCAL_DIR")
        base = Path(given) if given else Path(tempfile.gettempdir()) / f"ps2stream-{os.getuid()}"
        base, name = base.absolute(), hashlib.sha256(f"{location} {job_id}".encode()).hexdigest()[:16]
        return cls(base / name, HostCache(base / "blobs", name) if job_id else None)

    @property
    def lock(self) -> JobLock:
        return JobLock(self.directory / "lock")

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def spark_log(self) -> Path:
        return self.directory / "spark.log"

    def spool(self, batch_id: int, epoch: int = 0) -> Path:
        """Return where the driver of an epoch spools the events of a batch; nothing else is there."""
        return self.directory / "spool" / f"{epoch:08}-{batch_id:012}"

    def drop_spools(self, before: int) -> None:
        """Remove what was spooled in epochs before one."""
        for path in (self.directory / "spool").glob("*"):
            if path.name < f"{before:08}":
                shutil.rmtree(path, ignore_errors=True)

    def storage(self, name: str) -> MappedStorage:
        """Return where an index of the registrar lies."""
        return MappedStorage(self._index / name)

    def drop(self, name: str) -> None:
        """Remove an index of the registrar that has been replaced."""
        shutil.rmtree(self._index / name, ignore_errors=True)

    def drop_all(self) -> None:
        """Remove all indexes that a registrar left; those of workers stay."""
        for kind in ("registry-*", "routing-*"):
            for path in self._index.glob(kind):
                shutil.rmtree(path, ignore_errors=True)

    @property
    def replica(self) -> Path:
        """Return where what other hosts decided is kept for this one."""
        return self._index / "replica"

    def worker_home(self, worker_id: int) -> WorkerHome:
        return WorkerHome(self._index / f"worker-{worker_id:03}")

    @property
    def _index(self) -> Path:
        return self.directory / "index"
