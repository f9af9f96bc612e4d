"""Laws of where publications stand among updates: ``after``, ``as_of``, rising, and those without deliveries.

Positions that nobody told must be possible. In the order of offsets each publication without deliveries
takes the lowest position that it could have had: not below those before it, with nobody there who matches.
If none is left up to the next position that is known, something was lost. The lowest is best for all that
follow, so nothing else has to be tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from ps2stream.model.schemas import AFTER_ALL_SEQS, BEFORE_ALL_SEQS
from ps2stream.testing.fates import Fate
from ps2stream.testing.history import Violation

AFTER = "after"
AS_OF = "as_of"
RISING = "rising"
LOST = "lost"


class _Floor(NamedTuple):
    """A position that later publications of a partition are not below, and because of whom."""

    position: int
    because: str


_BOTTOM = _Floor(BEFORE_ALL_SEQS + 1, "nobody")


def check_demands(fates: Iterable[Fate]) -> Iterator[Violation]:
    """Check what records of publications demanded."""
    for fate in fates:
        for position in fate.positions:
            if fate.sent.after is not None and position <= fate.sent.after:
                yield Violation(AFTER, f"{fate} must have a position after {fate.sent.after}; got {position}")
            if fate.demanded is not None and position != fate.demanded:
                need = f"{fate} must have position {fate.demanded}, as of {fate.sent.as_of}"
                yield Violation(AS_OF, f"{need}; got {position}")


def check_rising(fates: Iterable[Fate]) -> Iterator[Violation]:
    """Check the order of positions, and that those without deliveries can have one."""
    fates = [fate for fate in fates if fate.met is not None and not fate.is_rejected and fate.has_happened]
    in_order = [fate for fate in fates if fate.demanded is None and fate.sent.offset is not None]
    in_order.sort(key=_place)
    for _, partition in groupby(in_order, key=lambda fate: _place(fate)[0]):
        yield from _check_partition(list(partition))
    for fate in fates:
        if fate.delivered:
            continue
        if fate.demanded is not None:
            if fate.expected_at(fate.demanded):
                yield _lost(fate, fate.demanded, fate.demanded)
        elif fate.sent.offset is None and _lowest_free(fate, _BOTTOM.position) is None:
            yield _lost(fate, _lowest(fate, _BOTTOM.position), None)


def _check_partition(fates: list[Fate]) -> Iterator[Violation]:
    # Publications of one record have no order among themselves.
    records = [list(record) for _, record in groupby(fates, key=_place)]
    floor = _BOTTOM
    for record, ceiling in zip(records, _ceilings(records), strict=True):
        reached = [floor]
        for fate in record:
            if fate.delivered:
                known = fate.positions[0]
                if known < floor.position:
                    need = f"{fate} must not be below position {floor.position} of {floor.because}"
                    yield Violation(RISING, f"{need}; got {known}")
                    reached = []  # go on from where it fell to: one step down is one violation
                reached.append(_Floor(known, str(fate)))
                continue
            lowest, free = _lowest(fate, floor.position), _lowest_free(fate, floor.position)
            # What follows has fallen if it is below, and says nothing about this one.
            highest = ceiling if ceiling is not None and ceiling >= lowest else None
            if free is None or (highest is not None and free > highest):
                yield _lost(fate, lowest, highest)
            else:
                reached.append(_Floor(free, str(fate)))
        floor = max(reached)


def _ceilings(records: list[list[Fate]]) -> list[int | None]:
    """Return for each record the next position behind it that is known."""
    ceilings: list[int | None] = []
    ceiling: int | None = None
    for record in reversed(records):
        ceilings.append(ceiling)
        known = [fate.positions[0] for fate in record if fate.delivered]
        ceiling = min(known, default=ceiling)
    return ceilings[::-1]


def _lowest(fate: Fate, floor: int) -> int:
    return floor if fate.sent.after is None else max(floor, fate.sent.after + 1 | 1)


def _lowest_free(fate: Fate, floor: int) -> int | None:
    """Return the lowest position from the floor on at which nobody matches; None if there is none."""
    position = _lowest(fate, floor)
    for version in fate.met or ():  # by seq
        if version.is_live_at(position):
            if version.end == AFTER_ALL_SEQS:
                return None
            position = version.end + 1
    return position


def _lost(fate: Fate, lowest: int, highest: int | None) -> Violation:
    version = next(version for version in fate.met or () if version.is_live_at(lowest))
    positions = f"from {lowest} to {'the end' if highest is None else highest}"
    example = f"at {lowest} it is subscription {version.id!r} of seq {version.seq}"
    expected = f"somebody matches at every position that it could have, {positions}; {example}"
    return Violation(LOST, f"{fate} must have deliveries, since {expected}; got none")


def _place(fate: Fate) -> tuple[int, int]:
    return fate.sent.partition or 0, fate.sent.offset or 0
