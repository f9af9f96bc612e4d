"""Judge a history: is there an order of all events that explains every delivery, as was promised?

The engine places publications between updates and tells where (``publication_seq``), so no order has to be
searched for: given its position, a publication has exactly the matches of the oracle, or a law is broken.

*published*     What is delivered was published.
*once*          No match is delivered twice.
*one position*  All deliveries of a publication have one position, which is not that of an update.
*lost*          A publication has no match at its position that was not delivered. One without deliveries may
                have been where nobody matches: behind those before it, before those behind it.
*unexpected*    What is delivered matches at that position.
*after, as_of*  The position is above the one, exactly the other. Read your writes: ``after`` what was
                acknowledged.
*rising*        Positions of a partition do not fall from offset to offset, but for ``as_of``.
*order*         Nor do they in what a worker delivers to a subscription, for each partition of publications.
*rejected*      What makes no sense is rejected, once, and nothing else, but that ``as_of`` may be refused.

*acknowledged* and *real time* are laws of the log (``acknowledged_log``). That an acknowledged update is seen
by a later publication which does not ask for it is no law.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ps2stream.model.matches import Match
from ps2stream.testing import oracle
from ps2stream.testing.acknowledged_log import Placed, check_log, check_real_time, seq_of, settled
from ps2stream.testing.fates import Fate, fates_of, shown
from ps2stream.testing.final_positions import check_final_positions
from ps2stream.testing.history import Delivery, History, Violation
from ps2stream.testing.oracle import EventRow, Rejection, Version
from ps2stream.testing.position_laws import LOST, check_demands, check_rising

PUBLISHED = "published"
ONCE = "once"
ONE_POSITION = "one position"
UNEXPECTED = "unexpected"
ORDER = "order"
REJECTED = "rejected"


def check(history: History) -> list[Violation]:
    """Return every law that a history breaks; it must have been read to its end."""
    log = settled(history)
    lives, rejected = oracle.versions(log, history.stop_words)
    fates = fates_of(history, lives)
    return [
        *check_log(history.updates, log),
        *_check_real_time(history, fates),
        *_check_published(history.deliveries, fates),
        *_check_once(history.deliveries),
        *_check_one_position(fates, log),
        *_check_matches(fates, lives),
        *check_demands(fates),
        *check_rising(fates),
        *check_order(history.deliveries, _partitions(fates)),
        *_check_rejections(history.rejections, rejected, fates),
    ]


def check_at_least_once(history: History) -> list[Violation]:
    """Return the laws that a history breaks where deliveries may come again.

    Whatever comes matches at the position that it tells, and of the positions that a publication may have
    had, one has all its matches delivered (``final_positions.py``). What makes no sense is rejected, once or
    more. Order is no law here: repeats come behind what they repeat (``check_order`` for one process alone).
    """
    log = settled(history)
    lives, rejected = oracle.versions(log, history.stop_words)
    fates = fates_of(history, lives)
    return [
        *check_log(history.updates, log),
        *_check_published(history.deliveries, fates),
        *_check_matches(fates, lives, may_repeat=True),
        *check_demands(fates),
        *check_final_positions(fates),
        *_check_rejections(history.rejections, rejected, fates, may_repeat=True),
    ]


def _check_real_time(history: History, fates: list[Fate]) -> Iterator[Violation]:
    yield from check_real_time(
        Placed(
            f"{update.event.op} of {update.event.id!r}", update.invoked_s, update.acked_s, update.event.seq
        )
        for update in history.updates
        if update.event.seq is not None
    )
    partitions: dict[int | None, list[Placed]] = {}
    for fate in fates:
        sent = fate.sent
        if sent.offset is not None:
            placed = Placed(str(fate), sent.invoked_s, sent.acked_s, sent.offset)
            partitions.setdefault(sent.partition, []).append(placed)
    for partition in partitions.values():
        yield from check_real_time(partition)


def _check_published(deliveries: Iterable[Delivery], fates: list[Fate]) -> Iterator[Violation]:
    sent = {fate.sent.event.id for fate in fates}
    for match, _ in deliveries:
        if match.publication_id not in sent:
            yield Violation(PUBLISHED, f"{_delivered(match)}; nobody published it")


def _check_once(deliveries: Iterable[Delivery]) -> Iterator[Violation]:
    for match, n in Counter(match for match, _ in deliveries).items():
        if n > 1:
            yield Violation(ONCE, f"{_delivered(match)} {n} times; expected once")


def _check_one_position(fates: list[Fate], log: list[EventRow]) -> Iterator[Violation]:
    taken = {seq_of(event) for event in log}
    for fate in fates:
        if len(fate.positions) > 1:
            got = ", ".join(map(str, fate.positions))
            yield Violation(ONE_POSITION, f"deliveries of {fate} must have one position; got {got}")
        for position in taken.intersection(fate.positions):
            got = f"got {position}, the seq of an update"
            yield Violation(ONE_POSITION, f"{fate} must have a position between updates; {got}")


def _check_matches(
    fates: list[Fate], lives: list[Version], *, may_repeat: bool = False
) -> Iterator[Violation]:
    """Compare deliveries with what the oracle finds at the position that they tell."""
    by_name = {(version.id, version.seq): version for version in lives}
    for fate in fates:
        for position in fate.positions:
            expected = fate.expected_at(position)
            got = {match[:2]: match for match in fate.delivered if match.publication_seq == position}
            for name in sorted(got.keys() - expected):
                reason = _why_not(fate, by_name.get(name), position)
                yield Violation(UNEXPECTED, f"{_delivered(got[name])}; {reason}")
            if fate.position is not None and not may_repeat:
                for missed, seq in sorted(expected - got.keys()):
                    missing = f"subscription {missed!r} of seq {seq}, which matches there; not delivered"
                    yield Violation(LOST, f"{fate} at position {position} must reach {missing}")


def _why_not(fate: Fate, version: Version | None, position: int) -> str:
    """Return why a publication must not be delivered to a version of a subscription."""
    if fate.met is None:
        return "the publication makes no sense and must be rejected"
    if version is None:
        return "there is no such subscription"
    if position <= version.seq:
        return "the position is before the subscription"
    if position >= version.end:
        return f"the subscription ended at seq {version.end}"
    return "its text or place does not match the subscription"


def _partitions(fates: list[Fate]) -> dict[str | None, int]:
    """Return the partitions of publications that may not be placed before earlier ones."""
    return {
        fate.sent.event.id: fate.sent.partition
        for fate in fates
        if fate.sent.partition is not None and fate.sent.as_of is None
    }


def check_order(deliveries: Iterable[Delivery], partitions: Mapping[str | None, int]) -> Iterator[Violation]:
    """Check the law of order alone; ``partitions`` are those of publications, by id."""
    newest: dict[tuple[str, int, int], Match] = {}
    for match, worker in deliveries:
        partition = partitions.get(match.publication_id)
        if worker is None or partition is None:
            continue
        before = newest.get(key := (match.subscription_id, worker, partition))
        if before is not None and match.publication_seq < before.publication_seq:
            behind = f"behind publication {before.publication_id!r} at position {before.publication_seq}"
            yield Violation(
                ORDER, f"worker {worker}: {_delivered(match)} {behind}; both of partition {partition}"
            )
        newest[key] = match


def _check_rejections(
    got: Iterable[Rejection], updates: Iterable[Rejection], fates: list[Fate], *, may_repeat: bool = False
) -> Iterator[Violation]:
    """Compare rejections: those of updates by seq, those of publications by what is shown of them."""
    rejected, expected = Counter(got), Counter(updates)
    for rejection in expected - rejected:
        named = f"{rejection.op} of {rejection.id!r} at seq {rejection.seq}"
        yield Violation(REJECTED, f"{named} makes no sense and must be rejected; was not")
    others = Counter((rejection.op, rejection.id) for rejection in (rejected - expected).elements())
    must = Counter(shown(fate) for fate in fates if fate.met is None and fate.has_happened)
    may = Counter(shown(fate) for fate in fates if fate.met is None or fate.sent.as_of is not None)
    for op, name in must - others:
        yield Violation(REJECTED, f"{op} of {name!r} makes no sense and must be rejected; was not")
    for (op, name), n in (others - may).items():
        if may_repeat and (op, name) in may:
            continue
        yield Violation(REJECTED, f"{op} of {name!r} must not be rejected; was, {n} times more than expected")
    for fate in fates:
        # Who comes after a dispatcher that answered it may not know that position any more.
        may_be_both = may_repeat and fate.sent.as_of is not None
        if fate.is_rejected and fate.delivered and not may_be_both:
            yield Violation(
                REJECTED, f"{fate} was rejected and must not be delivered; {_delivered(fate.delivered[0])}"
            )


def _delivered(match: Match) -> str:
    subscription = f"subscription {match.subscription_id!r} of seq {match.subscription_seq}"
    return f"{subscription} got publication {match.publication_id!r} at position {match.publication_seq}"
