"""From one dispatcher to the next: what the one before has sent, although it did not note it.

A dispatcher writes packets without transactions. It begins a step when brokers have acknowledged all packets
of the one before, so what it leaves is whole but for its last step, which some workers may have and others
not. Of the same publications nobody must see two positions. So a successor

1. greets every worker with the next incarnation: packets of earlier ones count no more behind that;
2. reads what lies before its greetings and behind what was noted: all that counts of the last incarnation;
3. notes that as done, but for the last step, which is to be *repeated*: the same records, as far as the log
   was known then. That gives the same packets, and a worker passes over those whose records it has.

Only then it may send anything else. What cannot be repeated piece by piece, a step with more than one packet
for a worker or with records that are rejected, is written in one piece with its note.

The driver does the same for all dispatchers that there have ever been before it starts others: with another
number of them a partition may be another's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from ps2stream.errors import StateError
from ps2stream.model.schemas import BEFORE_ALL_SEQS, empty
from ps2stream.resident.notes import DispatcherNote, Repeat, note_from_bytes, note_to_bytes
from ps2stream.resident.routed import RoutedHeader, header_of, to_record
from ps2stream.resident.wire import DISPATCHER, Place, Received, Send, Topic, Wire
from ps2stream.roles.packets import ROUTED

HEARTBEAT = empty(ROUTED)
#: Another dispatcher's transaction may hold up what lies behind it until brokers abort it.
_PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.01


def handed_over(wire: Wire, number: int, n_workers: int) -> DispatcherNote:
    """Take over from the dispatcher that had a number before; return how far it was, which is noted now."""
    note = note_from_bytes(DispatcherNote, wire.notes(DISPATCHER).get(number))
    greeting = RoutedHeader(number, BEFORE_ALL_SEQS, BEFORE_ALL_SEQS, incarnation=note.incarnation + 1)
    record = to_record(HEARTBEAT, greeting)
    greeted = wire.send([Send(Place(Topic.ROUTED, worker), record) for worker in range(n_workers)])
    headers = [
        header
        for worker, end in enumerate(greeted)
        for header in _of_the_last(note, number, _headers(wire, worker, note.routed.get(worker, end), end))
    ]
    settled = replace(
        _with_steps(note, headers),
        incarnation=greeting.incarnation,
        routed={worker: end + 1 for worker, end in enumerate(greeted)},
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


def _of_the_last(
    note: DispatcherNote, number: int, headers: Iterator[RoutedHeader]
) -> Iterator[RoutedHeader]:
    """Choose what a worker takes for packets of a dispatcher: an incarnation ends when a later one greets."""
    incarnation = note.incarnation
    for header in headers:
        if header.dispatcher == number and header.incarnation >= incarnation:
            incarnation = header.incarnation
            yield header


def _with_steps(note: DispatcherNote, headers: list[RoutedHeader]) -> DispatcherNote:
    """Account for steps that were sent behind a note; only the last of them may lack packets."""
    horizon = max([note.horizon, *(header.horizon for header in headers)])
    steps = {(header.incarnation, header.step): header for header in headers if header.sources}
    if not steps:
        return replace(note, horizon=horizon)
    done, uptos, repeats = dict(note.publications), dict(note.uptos), dict[int, Repeat]()
    *whole, last = (steps[key] for key in sorted(steps))
    for step in whole:
        for partition, _, stop, upto in step.sources:
            done[partition] = max(done.get(partition, 0), stop)
            if upto is not None:
                uptos[partition] = max(uptos.get(partition, BEFORE_ALL_SEQS), upto)
    for partition, start, stop, _ in last.sources:
        if stop > done.get(partition, 0):  # else it was written with its note
            done[partition] = max(done.get(partition, 0), start)
            repeats[partition] = Repeat(stop, last.needs, last.horizon)
    return replace(note, publications=done, uptos=uptos, horizon=horizon, repeats=repeats)
