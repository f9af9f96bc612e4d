"""Plans and snapshots of a log in the store, each under a name of its own.

A file counts when the log or a note names it; one that was written by somebody who was fenced before that is
left over, and goes with the next sweep.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from ps2stream.partitioning.plan import Plan
from ps2stream.resident.entries import Entry, EntryReader, PlanPlace, to_bytes
from ps2stream.store.contract import Store

#: What a log begins with, before its first snapshot.
FIRST_SNAPSHOT = "snapshot-first.arrow"
_MOST_PLANS = 8

#: Plans that this process has read, by their keys, which are unique.
_plans: dict[str, Plan] = {}


@dataclass(frozen=True, slots=True)
class RoleFiles:
    """Files that all roles of a deployment read; the registrar writes them, and the driver the first."""

    store: Store

    def write_plan(self, plan: Plan) -> PlanPlace:
        place = PlanPlace(plan.number, f"plan-{plan.number:06}-{uuid.uuid4().hex}.npz")
        written = io.BytesIO()
        plan.write(written)
        self.store.put(place.key, written.getvalue())
        return place

    def read_plan(self, place: PlanPlace) -> Plan:
        """Return a plan; a process reads it once."""
        if place.key not in _plans:
            while len(_plans) >= _MOST_PLANS:
                _plans.pop(next(iter(_plans)))
            blob = self.store.get(place.key)
            _plans[place.key] = Plan.read(pa.BufferReader(blob), self.store.location(place.key))
        return _plans[place.key]

    def write_snapshot(self, entry: Entry, key: str | None = None) -> str:
        """Keep an entry that stands for all before it; return its key."""
        key = key or f"snapshot-{uuid.uuid4().hex}.arrow"
        self.store.put(key, to_bytes(entry))
        return key

    def read_snapshot(self, key: str) -> Entry:
        entry = EntryReader().take(self.store.get(key))
        assert entry is not None  # a snapshot has one part
        return entry

    def keys(self) -> list[str]:
        """Return the keys of all files."""
        return list(self.store.list())

    def remove(self, keys: Collection[str]) -> None:
        self.store.delete(*keys)
