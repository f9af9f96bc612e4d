"""Have the resident roles of a deployment processed all events that there are?"""

from __future__ import annotations

import time

from ps2stream.kafka.ends import Ends
from ps2stream.kafka.places import Place
from ps2stream.kafka.role_progress import all_read
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import read_notes
from ps2stream.resident.notes import DispatcherNote, RegistrarNote, WorkerNote, note_from_bytes
from ps2stream.resident.wire import DISPATCHER, REGISTRAR, WORKER, Topic

_LOOK_EVERY_S = 0.5


class RolesIdleness:
    """Look, not too often, how far topics go and how far roles are."""

    def __init__(self, topics: RoleTopics) -> None:
        self._topics = topics
        self._ends = Ends(topics.topics.kafka)
        self._next = time.monotonic()

    def is_idle(self) -> bool:
        """Say whether nothing is left to do: what comes first is looked at first, so nothing slips by."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _LOOK_EVERY_S
        registrar = note_from_bytes(RegistrarNote, self._notes(REGISTRAR).get(0))
        if not all_read(self._topics, self._ends, {Place(Topic.UPDATES): registrar.updates}):
            return False
        n_partitions = self._topics.topics.n_partitions(self._topics.topics.publications)
        done = {Place(Topic.PUBLICATIONS, number): 0 for number in range(n_partitions)}
        for said in self._notes(DISPATCHER).values():
            for number, offset in note_from_bytes(DispatcherNote, said).publications.items():
                place = Place(Topic.PUBLICATIONS, number)
                done[place] = max(done.get(place, 0), offset)
        if not all_read(self._topics, self._ends, done):
            return False
        notes = self._notes(WORKER)
        routed = {
            Place(Topic.ROUTED, number): note_from_bytes(WorkerNote, notes.get(number)).routed
            for number in range(self._topics.n_workers)
        }
        return all_read(self._topics, self._ends, routed)

    def _notes(self, kind: str) -> dict[int, bytes]:
        return read_notes(self._topics, self._ends, kind)
