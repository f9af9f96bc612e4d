"""The routing plans of a job: those that the log names, and perhaps one that it is about to name."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from ps2stream.errors import StateError
from ps2stream.partitioning.plan import Plan
from ps2stream.store.contract import Store

_NAME = re.compile(r"plan-(\d{6,})\.npz")
#: A plan is a zip file, which ends with names, sizes and checksums of all its parts; they take far less.
_TAIL_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans by number."""

    store: Store

    def add(self, plan: Plan) -> None:
        """Write a plan; it comes into use with the first segment of the log that names it."""
        with self.store.writer(_key(plan.number)) as file:
            plan.write(file)

    def get(self, number: int) -> Plan:
        """Return a plan; a process reads it once, whoever asks for it."""
        where = self.store.location(_key(number))
        try:
            blob = self.store.get(_key(number))
        except StateError as error:
            raise StateError(f"plan {where} cannot be read: {error}") from error
        # By contents, not by number: a number is used again where a crash came before the log named it.
        return _load(where, _Blob(blob))

    def keep(self, numbers: Collection[int]) -> None:
        """Remove all plans but these; call between batches."""
        for key in self.store.list():
            name = _NAME.fullmatch(key)
            if name and int(name[1]) not in numbers:
                self.store.delete(key)


def _key(number: int) -> str:
    return f"plan-{number:06}.npz"


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
