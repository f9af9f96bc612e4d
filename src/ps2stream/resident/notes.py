"""Notes: how far a role is, written in one piece with what it made of what it read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeVar

from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS
from ps2stream.resident.files import FIRST_SNAPSHOT
from ps2stream.resident.positions import NOTHING_YET


@dataclass(frozen=True, slots=True)
class RegistrarNote:
    """``updates``: the next offset to read. The snapshot stands for the log before offset ``log``.

    ``trimmed``: the one before it did so up to here. ``n_adjustments``: made so far.
    """

    updates: int = 0
    snapshot: str = FIRST_SNAPSHOT
    log: int = 0
    snapshot_before: str = FIRST_SNAPSHOT
    n_adjustments: int = 0


class Repeat(NamedTuple):
    """Records of a partition up to ``stop`` that are to be routed once more, as they were.

    That is with the log as it was known up to ``needs``, and the horizon of then.
    """

    stop: int
    needs: int
    horizon: int


#: By partition, one step after the other.
Repeats = dict[int, tuple[Repeat, ...]]


@dataclass(frozen=True, slots=True)
class DispatcherNote:
    """``publications``: the next offset of each partition. All of the log up to ``applied`` was known.

    ``horizon``: no publication will get a lower position. ``uptos``: where events bring their order,
    later ones of a partition stand behind this. ``incarnation``: rises with every start of the role.
    ``routed``: all that lies before these offsets of the workers' partitions is accounted for here.
    ``repeats``: what some workers may have and others not (``handover.py``).
    """

    publications: dict[int, int] = field(default_factory=dict)
    applied: int = NOTHING_YET
    horizon: int = BEFORE_ALL_SEQS
    uptos: dict[int, int] = field(default_factory=dict)
    incarnation: int = 0
    routed: dict[int, int] = field(default_factory=dict)
    repeats: Repeats = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkerNote:
    """``routed``: the next offset. ``horizons``, ``incarnations``: of each dispatcher, as packets say.

    ``run``: the start of the job that it is of; ``routed_before``: where packets ended when that began.
    ``taken``: up to which record of each partition of publications packets have been matched; ``steps``:
    of each dispatcher, the incarnation and the number of the last step that it has taken packets of.
    """

    routed: int = 0
    horizons: dict[int, int] = field(default_factory=dict)
    incarnations: dict[int, int] = field(default_factory=dict)
    run: str = ""
    routed_before: int = 0
    taken: dict[int, int] = field(default_factory=dict)
    steps: dict[int, tuple[int, int]] = field(default_factory=dict)


_Note = TypeVar("_Note", RegistrarNote, DispatcherNote, WorkerNote)


#: What notes of earlier versions say besides.
_RETIRED = frozenset({"is_exact"})
#: What is no number, by its name.
_MADE: dict[str, Callable[[Any], Any]] = {
    # Earlier versions knew of one at most.
    "repeats": lambda said: tuple(map(Repeat._make, said if isinstance(said[0], list) else [said])),
    "steps": tuple,
}


def note_to_bytes(note: RegistrarNote | DispatcherNote | WorkerNote) -> bytes:
    return json.dumps({each.name: getattr(note, each.name) for each in fields(note)}).encode()


def note_from_bytes(kind: type[_Note], said: bytes | None) -> _Note:
    """Read a note; where there is none, a role begins with the first record."""
    if said is None:
        return kind()
    try:
        told: dict[str, Any] = json.loads(said)
        known = {name: value for name, value in told.items() if name not in _RETIRED}
        for name, value in known.items():
            if isinstance(value, dict):  # JSON has no numbers as keys
                made = _MADE.get(name, int)
                known[name] = {int(key): made(each) for key, each in value.items()}
        return kind(**known)
    except (ValueError, TypeError, AttributeError) as error:
        raise StateError(f"the note of a role cannot be read: {error}") from error
