"""Random event logs that are small but mean: few words, so that matches occur, and every edge there is.

The same arguments give the same log, on every machine. Subscriptions come, go and are replaced while
publications arrive; expressions nest; regions and points lie on the edges of grid cells, on each other's
corners, at the poles and across the antimeridian, down to single points; texts may be empty, shouted,
decomposed or full of emoji. A share of the events can be made invalid, each in one of the ways
that the oracle rejects.
"""

from __future__ import annotations

import math
import random
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

from ps2stream.errors import ExpressionError
from ps2stream.model.expressions import parse
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.model.square_region import Bounds
from ps2stream.testing.oracle import EventRow

#: Frequent words first; the first two make natural stop words.
VOCABULARY = (
    *("the", "a", "fire", "smoke", "rain", "storm", "flood", "road", "bridge", "train", "delay"),
    *("concert", "goal", "pizza", "coffee", "naïve", "café", "straße", "ÅNGSTRÖM", "İzmir", "ﬁre", "한글"),
    *("東京", "москва", "don't", "covid-19", "#sale", "x_y", "42", "½"),
)

_SEPARATORS = (" ", " ", " ", " ", ", ", " #", "\n", "😀", " 🔥 ", "\t", "… ", "-", "\u200d")
_TOO_DEEP = "(" * 200 + "fire" + ")" * 200
_BAD_EXPRESSIONS = (None, "", "fire AND", "OR", "(fire", "fire)", "NOT fire", "fire ()", "🔥", _TOO_DEEP)
_FINEST_GRID = 7
_N_WORDS = 8
_MAX_NESTING = 3


def random_events(
    n_events: int,
    seed: int,
    *,
    invalid_share: float = 0.05,
    publication_share: float = 0.6,
    n_subscription_ids: int | None = None,
) -> pa.Table:
    """Return a log of events, with gaps in ``seq``.

    The fewer subscription ids there are (an eighth of the number of events, unless told), the more often one
    is subscribed again. Exactly the events made invalid are rejected, if there are no stop words.
    """
    rng = random.Random(seed)
    ids = [f"s{number}" for number in range(n_subscription_ids or max(1, n_events // 8))]
    live: dict[str, Bounds] = {}
    rows: list[EventRow] = []
    last_seq = 0
    for number in range(n_events):
        seq = last_seq + rng.choice((1, 1, 1, 2, 5))
        if rng.random() < publication_share:
            event = _publication(rng, seq, f"p{number}", live)
        elif live and rng.random() < 0.25:
            event = EventRow(seq, UNSUBSCRIBE, rng.choice(list(live)))
        else:
            event = _subscription(rng, seq, rng.choice(ids))
        if rng.random() < invalid_share:
            event = _invalid(rng, event, last_seq)
        elif event.op == SUBSCRIBE:
            live[str(event.id)] = _region_of(event)
        elif event.op == UNSUBSCRIBE:
            del live[str(event.id)]
        rows.append(event)
        last_seq = max(last_seq, event.seq or 0)
    return pa.Table.from_pylist([row._asdict() for row in rows], EVENTS)


class Step(NamedTuple):
    """What clients of a running stream do next: send an update or a publication, without a seq.

    Its op may be spoilt, so ``is_update`` says where it goes. ``after`` and ``as_of`` are what a publication
    demands. They name an earlier update by its number among updates, from 0: what seq it got is known when
    it is acknowledged.
    """

    event: EventRow
    is_update: bool
    after: int | None = None
    as_of: int | None = None


def random_steps(
    n_steps: int,
    seed: int,
    *,
    invalid_share: float = 0.05,
    publication_share: float = 0.6,
    after_share: float = 0.2,
    as_of_share: float = 0.1,
) -> list[Step]:
    """Return steps of which some are invalid and some publications demand a position.

    Half of those with ``after`` read what was written last, the others name any update. A later step may be
    rejected because an earlier one was made invalid.
    """
    events = random_events(n_steps, seed, invalid_share=0.0, publication_share=publication_share)
    rng = random.Random(f"steps {seed}")
    steps: list[Step] = []
    n_updates = 0
    for row in events.to_pylist():
        event = EventRow(**row)._replace(seq=None)
        is_update = event.op != PUBLISH
        demand = rng.random()
        if rng.random() < invalid_share:
            event = rng.choice(_ways_to_spoil(rng, event))()
        if is_update or not n_updates or demand >= after_share + as_of_share:
            steps.append(Step(event, is_update))
        elif demand < after_share:
            steps.append(Step(event, is_update, after=rng.choice((n_updates - 1, rng.randrange(n_updates)))))
        else:
            steps.append(Step(event, is_update, as_of=rng.randrange(n_updates)))
        n_updates += is_update
    return steps


def random_text(rng: random.Random) -> str:
    """Return up to eight words, spelled and separated in any way; now and then none."""
    text = ""
    for _ in range(rng.choice((0, *range(1, _N_WORDS + 1), 4, 5, 6))):
        text += _spelled(rng, _word(rng)) + rng.choice(_SEPARATORS)
    return text


def random_expression(rng: random.Random) -> str:
    """Return an expression that parses."""
    while True:
        expression = _nested(rng, _MAX_NESTING)
        try:
            parse(expression)
        except ExpressionError:
            continue  # too many clauses, once in a long while
        return expression


def _nested(rng: random.Random, nesting: int) -> str:
    kind = rng.random()
    if nesting == 0 or kind < 0.45:
        return _spelled(rng, _word(rng))
    parts = [_nested(rng, nesting - 1) for _ in range(rng.choice((2, 2, 2, 3)))]
    if kind < 0.75:
        return " OR ".join(f"({part})" if rng.random() < 0.3 else part for part in parts)
    return rng.choice((" AND ", " ")).join(f"({part})" if " " in part else part for part in parts)


def random_region(rng: random.Random) -> Bounds:
    """Return a region that is valid and, more often than not, awkward."""
    west, east = sorted((_edge(rng, 180.0), _edge(rng, 180.0)))
    south, north = sorted((_edge(rng, 90.0), _edge(rng, 90.0)))
    awkward: tuple[Bounds, ...] = (
        (west, south, east, north),
        (west, south, east, north),
        (east, south, west, north),
        (west, south, west, south),
        (west, south, east, south),
        (west, south, west, north),
        (-180.0, rng.choice((south, 90.0)), 180.0, 90.0),
        (-180.0, -90.0, 180.0, rng.choice((north, -90.0))),
        (180.0, south, -180.0, north),
        (-180.0, -90.0, 180.0, 90.0),
    )
    if rng.random() < 0.6:
        return rng.choice(awkward)
    west, east = sorted((rng.uniform(-180, 180), rng.uniform(-180, 180)))
    south, north = sorted((rng.uniform(-90, 90), rng.uniform(-90, 90)))
    return (west, south, east, north)


def random_point(rng: random.Random, near: Bounds | None = None) -> tuple[float, float]:
    """Return a longitude and a latitude: on an edge, a hair beside one, in a region's corner, or anywhere."""
    if near is not None and rng.random() < 0.5:
        lon, lat = rng.choice((near[0], near[2])), rng.choice((near[1], near[3]))
    elif rng.random() < 0.5:
        lon, lat = _edge(rng, 180.0), _edge(rng, 90.0)
    else:
        lon, lat = rng.uniform(-180, 180), rng.uniform(-90, 90)
    if rng.random() < 0.2:
        lon = math.nextafter(lon, 0.0)
    if rng.random() < 0.2:
        lat = math.nextafter(lat, 0.0)
    return lon, lat


def _publication(rng: random.Random, seq: int, name: str, live: dict[str, Bounds]) -> EventRow:
    near = rng.choice(list(live.values())) if live else None
    lon, lat = random_point(rng, near)
    return EventRow(seq, PUBLISH, name, lat=lat, lon=lon, text=random_text(rng))


def _subscription(rng: random.Random, seq: int, name: str) -> EventRow:
    min_lon, min_lat, max_lon, max_lat = random_region(rng)
    event = EventRow(seq, SUBSCRIBE, name, expression=random_expression(rng))
    return event._replace(min_lon=min_lon, min_lat=min_lat, max_lon=max_lon, max_lat=max_lat)


def _invalid(rng: random.Random, event: EventRow, last_seq: int) -> EventRow:
    """Break a valid event in one way."""
    ways: list[Callable[[], EventRow]] = [
        lambda: event._replace(seq=None),
        lambda: event._replace(seq=last_seq if last_seq else None),
        lambda: event._replace(seq=last_seq - rng.randint(0, 9) if last_seq else None),
        *_ways_to_spoil(rng, event),
    ]
    return rng.choice(ways)()


def _ways_to_spoil(rng: random.Random, event: EventRow) -> list[Callable[[], EventRow]]:
    """Return what can be wrong with an event besides its seq."""
    ways: list[Callable[[], EventRow]] = [
        lambda: event._replace(op=rng.choice((None, "", "Publish", "delete"))),
        lambda: event._replace(id=rng.choice((None, ""))),
    ]
    if event.op == PUBLISH:
        ways += [
            lambda: event._replace(lat=_bad_coordinate(rng, 90.0)),
            lambda: event._replace(lon=_bad_coordinate(rng, 180.0)),
            lambda: event._replace(text=None),
        ]
    elif event.op == UNSUBSCRIBE:
        ways.append(lambda: event._replace(id="nobody"))
    else:
        ways += [
            lambda: event._replace(expression=rng.choice(_BAD_EXPRESSIONS)),
            lambda: event._replace(min_lon=_bad_coordinate(rng, 180.0)),
            lambda: event._replace(max_lon=_bad_coordinate(rng, 180.0)),
            lambda: event._replace(min_lat=_bad_coordinate(rng, 90.0)),
            lambda: event._replace(max_lat=_bad_coordinate(rng, 90.0)),
            lambda: event._replace(min_lat=10.0, max_lat=math.nextafter(10.0, 0.0)),
        ]
    return ways


def _bad_coordinate(rng: random.Random, bound: float) -> float | None:
    beyond = math.nextafter(bound, math.inf)
    return rng.choice((None, math.nan, math.inf, -math.inf, beyond, -beyond, 1e300))


def _edge(rng: random.Random, bound: float) -> float:
    """Return an edge of a cell of some grid of two to the power of k cells between -bound and bound."""
    n_cells = 1 << rng.randint(0, _FINEST_GRID)
    return -bound + 2 * bound / n_cells * rng.randint(0, n_cells)


def _word(rng: random.Random) -> str:
    # Squared, so that words differ in frequency: the posting term of a clause is its rarest.
    return VOCABULARY[int(rng.random() ** 2 * len(VOCABULARY))]


def _spelled(rng: random.Random, word: str) -> str:
    """Spell a word in another way; it need not be the same term (dotted i), but mostly is."""
    how = rng.randrange(8)
    if how == 0:
        return word.upper()
    if how == 1:
        return unicodedata.normalize("NFD", word)
    if how == 2:
        return f'"{word}"'
    return word


def _region_of(event: EventRow) -> Bounds:
    bounds = (event.min_lon, event.min_lat, event.max_lon, event.max_lat)
    west, south, east, north = (0.0 if bound is None else bound for bound in bounds)
    return (west, south, east, north)
