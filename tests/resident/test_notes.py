"""Notes come back as they were written; where there is none, a role begins with the first record."""

from __future__ import annotations

from typing import Any

import pytest

from ps2stream.errors import StateError
from ps2stream.resident.files import FIRST_SNAPSHOT
from ps2stream.resident.notes import (
    DispatcherNote,
    RegistrarNote,
    Repeat,
    WorkerNote,
    note_from_bytes,
    note_to_bytes,
)

NOTES = [
    RegistrarNote(7, "snapshot-2", 19, "snapshot-1", 3),
    DispatcherNote(
        {0: 5, 12: 1 << 60}, 100, 91, {0: -(1 << 63)}, 3, {0: 8}, {2: (Repeat(9, 7, -1), Repeat(11, 9, 7))}
    ),
    WorkerNote(8, {0: 5, 1: -(1 << 63)}, taken={2: 9}, steps={0: (3, 17)}),
]


@pytest.mark.parametrize("note", NOTES)
def test_a_note_comes_back_as_it_was(note: Any) -> None:
    assert note_from_bytes(type(note), note_to_bytes(note)) == note


def test_what_an_earlier_version_left_to_be_repeated_is_read() -> None:
    said = b'{"publications": {"2": 5}, "repeats": {"2": [9, 7, -1]}}'
    assert note_from_bytes(DispatcherNote, said).repeats == {2: (Repeat(9, 7, -1),)}


@pytest.mark.parametrize("kind", [RegistrarNote, DispatcherNote, WorkerNote])
def test_where_there_is_none_a_role_begins_with_the_first_record(kind: Any) -> None:
    assert note_from_bytes(kind, None) == kind()
    assert RegistrarNote().snapshot == FIRST_SNAPSHOT


def test_a_note_of_an_earlier_version_is_read() -> None:
    said = b'{"publications": {"0": 5}, "applied": 7, "horizon": 8, "incarnation": 2, "is_exact": true}'
    assert note_from_bytes(DispatcherNote, said) == DispatcherNote({0: 5}, 7, 8, incarnation=2)


@pytest.mark.parametrize("said", [b"", b"[]", b"7", b'{"tea": 1}', b'{"routed": {"x": 1}}'])
def test_what_is_no_note_is_an_error(said: bytes) -> None:
    with pytest.raises(StateError, match="the note of a role cannot be read"):
        note_from_bytes(WorkerNote, said)
