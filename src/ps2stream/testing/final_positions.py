"""Where deliveries may come again: a publication that was placed several times has one position that counts.

It is the one that its last dispatcher noted, and it has all its matches delivered. It does not fall from
offset to offset: a dispatcher's positions rise, and a successor begins behind those that were noted. Nor is
it below the first position at which the publication was delivered. Deliveries do not tell which one it is, so
each publication takes the lowest that it could have had, which is best for all that follow; one for which
none is left was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from ps2stream.model.schemas import AFTER_ALL_SEQS, BEFORE_ALL_SEQS
from ps2stream.testing.fates import Fate
from ps2stream.testing.history import Violation
from ps2stream.testing.position_laws import LOST

_BOTTOM = BEFORE_ALL_SEQS + 1


def check_final_positions(fates: Iterable[Fate]) -> Iterator[Violation]:
    """Check that each publication had a position at which all that match there were reached."""
    fates = [fate for fate in fates if fate.met is not None and not fate.is_rejected and fate.has_happened]
    in_order = [fate for fate in fates if fate.demanded is None and fate.sent.offset is not None]
    in_order.sort(key=_place)
    for _, partition in groupby(in_order, key=lambda fate: fate.sent.partition):
        yield from _check_partition(list(partition))
    for fate in fates:
        if fate.demanded is not None:
            if not _is_whole_at(fate, fate.demanded):
                yield _lost(fate, fate.demanded, fate.demanded)
        elif fate.sent.offset is None and _lowest_whole(fate, _BOTTOM, AFTER_ALL_SEQS) is None:
            yield _lost(fate, _BOTTOM, AFTER_ALL_SEQS)


def _check_partition(fates: list[Fate]) -> Iterator[Violation]:
    # Publications of one record have no order among themselves.
    records = [list(record) for _, record in groupby(fates, key=_place)]
    floor = _BOTTOM
    for record, ceiling in zip(records, _ceilings(records), strict=True):
        reached = [floor]
        for fate in record:
            position = _lowest_whole(fate, floor, ceiling)
            if position is None:
                yield _lost(fate, floor, ceiling)
            else:
                reached.append(position)
        floor = max(reached)


def _ceilings(records: list[list[Fate]]) -> list[int]:
    """Return for each record the highest position that leaves one to all behind it."""
    ceilings, ceiling = [], AFTER_ALL_SEQS
    for record in reversed(records):
        ceilings.append(ceiling)
        highest = [_highest_whole(fate) for fate in record]
        ceiling = min([ceiling, *(each for each in highest if each is not None)])
    return ceilings[::-1]


def _first(fate: Fate, floor: int) -> int:
    after = _BOTTOM if fate.sent.after is None else fate.sent.after + 1 | 1
    return max(floor, after, *fate.positions[:1])


def _lowest_whole(fate: Fate, floor: int, ceiling: int) -> int | None:
    """Return the lowest position within bounds that has all matches delivered; None if there is none."""
    first = _first(fate, floor)
    # Elsewhere no fewer match than right before, and nothing was delivered.
    ends = (version.end + 1 for version in fate.met or () if version.end != AFTER_ALL_SEQS)
    positions = {first, *fate.positions, *ends}
    found = [each for each in positions if first <= each <= ceiling and _is_whole_at(fate, each)]
    return min(found, default=None)


def _highest_whole(fate: Fate) -> int | None:
    met = fate.met or ()
    if all(version.end != AFTER_ALL_SEQS for version in met):
        return AFTER_ALL_SEQS
    first = _first(fate, _BOTTOM)
    positions = {first, *fate.positions, *(version.seq - 1 for version in met)}
    return max((each for each in positions if each >= first and _is_whole_at(fate, each)), default=None)


def _is_whole_at(fate: Fate, position: int) -> bool:
    reached = {match[:2] for match in fate.delivered if match.publication_seq == position}
    return fate.expected_at(position) <= reached


def _lost(fate: Fate, floor: int, ceiling: int) -> Violation:
    last = "the end" if ceiling == AFTER_ALL_SEQS else ceiling
    within = f"at none of the positions that it could have, from {_first(fate, floor)} to {last}"
    got = ", ".join(map(str, fate.positions)) or "none"
    return Violation(LOST, f"{fate} has reached all that match {within}; delivered at: {got}")


def _place(fate: Fate) -> tuple[int, int]:
    return fate.sent.partition or 0, fate.sent.offset or 0
