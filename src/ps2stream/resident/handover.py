"""From one dispatcher to the next: what the one before has sent, although it did not note it.

A dispatcher writes packets without transactions. It begins a step when brokers have acknowledged all packets
of the one before, so what it leaves is whole but for its last step, which some workers may have and others
not. Of the same publications nobody must see two positions. So a successor

1. greets every worker with the next incarnation: packets of earlier ones count no more behind that;
2. greets them once more when all have the first. One that does not know yet that it was replaced may send
   between two greetings what one worker takes and another passes over; all of that lies before these;
3. reads what lies before them and behind what was noted;
4. notes as done what all workers have taken that it concerns. From the first step on of which one has passed
   over a packet, or else the last, it is to be *repeated*, up to the last step that somebody has taken: the
   same records, as far as the log was known then. That gives the same packets, and a worker passes over those
   whose records it has.

Only then it may send anything else. What cannot be repeated piece by piece, a step with more than one packet
for a worker or with records that are rejected, is written in one piece with its note.

The driver does the same for all dispatchers that there have ever been before it starts others: with another
number of them a partition may be another's.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.resident.notes import DispatcherNote, Repeat, Repeats, note_from_bytes, note_to_bytes
from ps2stream.resident.routed import RoutedHeader, header_of, to_record
from ps2stream.resident.wire import DISPATCHER, Place, Received, Send, Topic, Wire
from ps2stream.roles.packets import ROUTED

HEARTBEAT = empty(ROUTED)
#: Another dispatcher's transaction may hold up what lies behind it until brokers abort it.
_PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.01


class _Sent(NamedTuple):
    """What a packet says, and whether its worker takes it: not behind the greeting of a later incarnation."""

    header: RoutedHeader
    counts: bool


def handed_over(wire: Wire, number: int, n_workers: int) -> DispatcherNote:
    """Take over from the dispatcher that had a number before; return how far it was, which is noted now."""
    note = note_from_bytes(DispatcherNote, wire.notes(DISPATCHER).get(number))
    greeting = RoutedHeader(number, BEFORE_ALL_SEQS, BEFORE_ALL_SEQS, incarnation=note.incarnation + 1)
    record = to_record(HEARTBEAT, greeting)
    greetings = [Send(Place(Topic.ROUTED, worker), record) for worker in range(n_workers)]
    firsts = wire.send(greetings)
    ends = wire.send(greetings)
    sent = [
        each
        for worker, (first, end) in enumerate(zip(firsts, ends, strict=True))
        for each in _sent_by(note, number, _headers(wire, worker, note.routed.get(worker, first), end))
    ]
    settled = replace(
        _with_steps(note, sent),
        incarnation=greeting.incarnation,
        routed={worker: end + 1 for worker, end in enumerate(ends)},
    )
    wire.commit([], note_to_bytes(settled))
    return settled


def _headers(wire: Wire, worker: int, start: int, end: int) -> Iterator[RoutedHeader]:
    """Read the headers of a worker's packets before an offset, when it is known which count.

    What was trimmed is of others: workers keep packets until their dispatcher has noted them.
    """
    place, until = Place(Topic.ROUTED, worker), time.monotonic() + _PATIENCE_S
    while not (records := _kept(wire, place, start)) or records[-1].offset < end:
        if time.monotonic() > until:
            raise StateError(f"a transaction hangs in partition {worker} of {Topic.ROUTED}, before {end}")
        time.sleep(_LOOK_EVERY_S)
    return (header_of(record.value or b"") for record in records if record.offset < end)


def _kept(wire: Wire, place: Place, start: int) -> list[Received]:
    """Read records from an offset on, or from the first that is kept."""
    first = wire.begins(Topic.ROUTED)[place.partition]
    try:
        return wire.read(place, max(first, start))
    except StateError:  # trimmed since it was looked for
        if wire.begins(Topic.ROUTED)[place.partition] == first:
            raise
        return _kept(wire, place, start)


def _sent_by(note: DispatcherNote, number: int, headers: Iterable[RoutedHeader]) -> Iterator[_Sent]:
    """Choose the packets of a dispatcher; a worker goes by the latest incarnation that has greeted it."""
    incarnation = note.incarnation
    for header in headers:
        if header.dispatcher == number:
            incarnation = max(incarnation, header.incarnation)
            yield _Sent(header, header.incarnation == incarnation)


def _with_steps(note: DispatcherNote, sent: Sequence[_Sent]) -> DispatcherNote:
    """Account for the steps that were sent behind a note."""
    horizon = max([note.horizon, *(each.header.horizon for each in sent if each.counts)])
    steps = {(each.header.incarnation, each.header.step): each.header for each in sent if each.header.sources}
    taken, passed_over = (
        {(each.header.incarnation, each.header.step) for each in sent if each.counts is counts} & steps.keys()
        for counts in (True, False)
    )
    if not taken:
        return replace(note, horizon=horizon)
    last = max(taken)
    # One that was replaced long ago may send, too: nobody takes anything of it, and it says nothing of these.
    first = min([last, *(key for key in passed_over if key[0] == last[0])])
    done, uptos, repeats = dict(note.publications), dict(note.uptos), dict[int, tuple[Repeat, ...]]()
    for key in sorted(key for key in taken if key < first):
        for partition, _, stop, upto in steps[key].sources:
            done[partition] = max(done.get(partition, 0), stop)
            if upto is not None:
                uptos[partition] = max(uptos.get(partition, BEFORE_ALL_SEQS), upto)
    for key in sorted(key for key in steps if first <= key <= last):
        for partition, start, stop, _ in steps[key].sources:
            if stop > done.get(partition, 0):  # else it was written with its note
                if partition not in repeats:
                    done[partition] = max(done.get(partition, 0), start)
                repeat = Repeat(stop, steps[key].needs, steps[key].horizon)
                repeats[partition] = (*repeats.get(partition, ()), repeat)
    left = still_to_repeat({**note.repeats, **repeats}, done)
    return replace(note, publications=done, uptos=uptos, horizon=horizon, repeats=left)


def still_to_repeat(repeats: Mapping[int, tuple[Repeat, ...]], done: Mapping[int, int]) -> Repeats:
    """Leave out what has been repeated, by partition."""
    left = {
        partition: tuple(each for each in some if each.stop > done.get(partition, 0))
        for partition, some in repeats.items()
    }
    return {partition: some for partition, some in left.items() if some}
