"""Which updates there were: what clients were told about them, against what the log holds in the end.

*acknowledged*  An acknowledged update is in the log, once, under the seq that its acknowledgement said, with
                what was sent. What else is in the log was sent by somebody who heard nothing of it.
*real time*     Who sends after another's acknowledgement comes after it: updates by seq, publications
                of a partition by offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ps2stream.testing.history import History, SentUpdate, Violation
from ps2stream.testing.oracle import EventRow

ACKNOWLEDGED = "acknowledged"
REAL_TIME = "real time"


class Placed(NamedTuple):
    """Something that was sent, and the number that it got."""

    name: str
    invoked_s: float
    acked_s: float | None
    number: int


def settled(history: History) -> list[EventRow]:
    """Return the log by seq; the acknowledged updates stand for it where nobody read it."""
    if history.log is None and (unknown := [sent for sent in history.updates if sent.event.seq is None]):
        raise ValueError(
            f"a history with updates of unknown seq needs the log; got none, and {len(unknown)} of them"
        )
    log = [sent.event for sent in history.updates] if history.log is None else history.log
    if any(event.seq is None for event in log):
        raise ValueError("every update of the log must have a seq; got None")
    return sorted(log, key=seq_of)


def check_log(sent: Iterable[SentUpdate], log: list[EventRow]) -> Iterator[Violation]:
    """Compare what was acknowledged with what is there."""
    by_seq: dict[int, EventRow] = {}
    for event in log:
        if seq_of(event) in by_seq:
            yield Violation(ACKNOWLEDGED, f"seq {event.seq} is in the log for two updates; expected one")
        by_seq[seq_of(event)] = event
    unclaimed = dict(by_seq)
    silent: list[SentUpdate] = []
    for update in sent:
        seq = update.event.seq
        if seq is None:
            silent.append(update)
        elif seq not in by_seq:
            yield Violation(ACKNOWLEDGED, f"{_shown(update.event)} was acknowledged; the log has no such seq")
        elif seq not in unclaimed:
            yield Violation(
                ACKNOWLEDGED, f"seq {seq} was acknowledged twice, the second time for {_shown(update.event)}"
            )
        elif _content(unclaimed.pop(seq)) != _content(update.event):
            yield Violation(
                ACKNOWLEDGED, f"{_shown(update.event)} was acknowledged; the log has {_shown(by_seq[seq])}"
            )
    yield from _check_silent(silent, unclaimed.values())


def _check_silent(silent: list[SentUpdate], unclaimed: Iterable[EventRow]) -> Iterator[Violation]:
    """Find what is left of the log among the updates whose seq nobody was told."""
    waiting: dict[tuple[object, ...], list[SentUpdate]] = {}
    # Those that must be there are found first.
    for update in sorted(silent, key=lambda one: one.acked_s is None, reverse=True):
        waiting.setdefault(_content(update.event), []).append(update)
    for event in unclaimed:
        if candidates := waiting.get(_content(event)):
            candidates.pop()
        else:
            yield Violation(ACKNOWLEDGED, f"the log has {_shown(event)}, which nobody sent")
    for update in (update for candidates in waiting.values() for update in candidates):
        if update.acked_s is not None:
            yield Violation(ACKNOWLEDGED, f"{_shown(update.event)} was acknowledged and is not in the log")


def check_real_time(sent: Iterable[Placed]) -> Iterator[Violation]:
    """Find what got a smaller number than something that was acknowledged before it was sent."""
    by_invocation = sorted(sent, key=lambda one: one.invoked_s)
    by_ack = sorted((one for one in by_invocation if one.acked_s is not None), key=_acked_s)
    n_acked, newest = 0, None
    for one in by_invocation:
        while n_acked < len(by_ack) and _acked_s(by_ack[n_acked]) < one.invoked_s:
            newest = max(newest or by_ack[n_acked], by_ack[n_acked], key=lambda other: other.number)
            n_acked += 1
        if newest is not None and one.number < newest.number:
            before = f"{newest.name} ({newest.number}), acknowledged before it was sent"
            yield Violation(REAL_TIME, f"{one.name} must come after {before}; got {one.number}")


def seq_of(event: EventRow) -> int:
    """Return the seq of an event that has one."""
    assert event.seq is not None
    return event.seq


def _acked_s(placed: Placed) -> float:
    assert placed.acked_s is not None
    return placed.acked_s


def _content(event: EventRow) -> tuple[object, ...]:
    # Not a number is not equal to itself, but an update that has it was sent all the same.
    return tuple("not a number" if value != value else value for value in event[1:])


def _shown(event: EventRow) -> str:
    at = "" if event.seq is None else f" at seq {event.seq}"
    what = "" if event.expression is None else f" to {event.expression!r}"
    return f"{event.op} of {event.id!r}{what}{at}"
