"""The routing plans of a job: those that the log names, and perhaps one that it is about to name."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from ps2stream.errors import StateError
from ps2stream.partitioning.plan import Plan
from ps2stream.store.contract import Store

_NAME = re.compile(r"plan-(\d{6,}?)(?:-(\d{8}))?\.npz")
#: Plans of epochs but 0: put once and for all.
FIXED_PLANS = re.compile(r"plan-(\d{6,})-\d{8}\.npz")
#: A plan is a zip file, which ends with names, sizes and checksums of all its parts; they take far less.
_TAIL_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans by number, each in the file of the epoch that made it.

    ``epochs``: who made the plans that are in use; all others are this epoch's own.
    """

    store: Store
    epoch: int = 0
    epochs: Mapping[int, int] = field(default_factory=dict)

    def add(self, plan: Plan) -> None:
        """Write a plan; it comes into use with the first segment of the log that names it.

        But for epoch 0 once and for all: a later epoch may have it in use.
        """
        key = _key(plan.number, self.epoch)
        if not self.epoch:
            with self.store.writer(key) as file:
                plan.write(file)
            return
        written = io.BytesIO()
        plan.write(written)
        if not self.store.put_if_absent(key, written.getvalue()):
            raise StateError(f"plan {self.store.location(key)} must not be written again")

    def get(self, number: int) -> Plan:
        """Return a plan; a process reads it once, whoever asks for it."""
        key = _key(number, self.epochs.get(number, self.epoch))
        where = self.store.location(key)
        try:
            blob = self.store.get(key)
        except StateError as error:
            raise StateError(f"plan {where} cannot be read: {error}") from error
        # By contents, not by number: a number is used again where a crash came before the log named it.
        return _load(where, _Blob(blob))

    def keep(self, numbers: Collection[int]) -> None:
        """Remove the plans that are not among these; call between batches, when the log names these.

        Where drivers of several epochs may write, only those below: numbers rise, so none of them is or
        will be used by anybody, while one above may be another driver's.
        """
        for key in self.store.list():
            name = _NAME.fullmatch(key)
            if name and (int(name[1]) < min(numbers) if self.epoch else int(name[1]) not in numbers):
                self.store.delete(key)


def is_below(key: str, number: int) -> bool:
    """Say whether a plan that is written once has a number below another; numbers rise."""
    name = FIXED_PLANS.fullmatch(key)
    return name is not None and int(name[1]) < number


def _key(number: int, epoch: int) -> str:
    return f"plan-{number:06}.npz" if epoch == 0 else f"plan-{number:06}-{epoch:08}.npz"


class _Blob:
    """A blob that is told from others by its length and its end."""

    def __init__(self, blob: pa.Buffer) -> None:
        self._blob: pa.Buffer | None = blob
        self._extract = (len(blob), bytes(blob.slice(max(0, len(blob) - _TAIL_BYTES))))

    def take(self) -> pa.Buffer:
        """Give the blob away: what is kept to compare with should not keep a file from being freed."""
        blob, self._blob = self._blob, None
        return blob

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Blob) and self._extract == other._extract

    def __hash__(self) -> int:
        return hash(self._extract)


@functools.lru_cache(maxsize=4)
def _load(where: str, blob: _Blob) -> Plan:
    return Plan.read(pa.BufferReader(blob.take()), where)
