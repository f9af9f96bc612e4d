"""Hypothesis strategies for everything a user can send: texts, expressions, regions, events, event logs."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from ps2stream.model.limits import MAX_EXPRESSION_BYTES, MAX_ID_BYTES, MAX_TEXT_BYTES
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.testing.oracle import EventRow
from ps2stream.text.terms import terms_of

#: Few words, so that what is drawn at random does meet; some are one term in several spellings.
WORDS = ["fire", "Fire", "FIRE", "#fire", "smoke", "rain", "rain's", "über", "u\u0308ber", "straße"]

#: Characters that normalisation, case folding or word boundaries treat specially.
ODD_CHARACTERS = [
    *"\u0130\u0131\u00df\u1e9e\u03a3\u03c3\u03c2\ufb00\ufb03\u0149\u01f0\u0390\u0345\u1e9b\u017f",  # folding
    *"\u0301\u0308\u0327\u0323\u0342\u200d\ufe0f\u20e3\u093e\u09be\u0338",  # combining, joining
    *"\u1100\u1161\u11a8\uac00\u11a7\u3131",  # Hangul jamo and syllables
    *"\u00a8\u00b4\u037a\u1fc1\u2474\u3250\u2167\u00bd\u00b2\u2460\uff21\uff08\ufdfa\u2126\u212a",  # composed
    *"\n\r\t\x00\x0b\x1c\x1f\x7f\x85\u00a0\u2028\u2029\u3000\ufeff\ufffd",  # controls and spaces
    *"_-'\"#@.,()09aAzZ ",
    *"\U0001f600\U0001f525\U0001f468\U0001f1e9\U0001d518\U0002f800\U00010400",  # beyond 16 bits
]

characters = st.one_of(st.sampled_from(ODD_CHARACTERS), st.characters(exclude_categories=["Cs"]))

ascii_texts = st.text(st.characters(max_codepoint=127), max_size=60)

texts = st.one_of(
    ascii_texts,
    st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join),
    st.text(characters, max_size=30),
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(characters, max_size=4)), max_size=10).map("".join),
)

#: A letter, a syllable or nothing, and marks of few classes up to and beyond the thirty that count.
_marks = st.tuples(
    st.sampled_from("\u0301\u0301\u0316\u0327\u0323\u0344\u0345\u0338\u3099\uff9e\u0f73\u05b0\u1de8\u034f"),
    st.sampled_from([1, 1, 2, 7, 13, 14, 28, 29, 30, 31]),
).map(lambda mark: mark[0] * mark[1])
_bases = st.sampled_from(
    ["", "\u1100\u1161", "fire", *"aE\u00e9\u1ec7\u0130\u30ab\uff76\u1100\uac00\u11a8\ufdfa\u2126- "]
)
mark_runs = st.tuples(_bases, st.lists(_marks, max_size=4)).map(lambda parts: parts[0] + "".join(parts[1]))
marked_texts = st.lists(mark_runs, max_size=6).map("".join)

keywords = st.one_of(
    st.sampled_from(WORDS),
    st.text(st.sampled_from("ab'_-\u00e9"), min_size=1, max_size=3).filter(lambda word: bool(terms_of(word))),
)


def _combine(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from([" AND ", " OR ", " ", "  AND\t", "\nOR "])
    joined = st.tuples(parts, operator, parts).map("".join)
    return st.one_of(joined, joined, parts.map("({})".format), parts.map(" ( {} ) ".format))


#: Expressions that parse, as strings.
expressions = st.recursive(keywords, _combine, max_leaves=8)

#: Expressions without parentheses, as nearly all real ones are.
flat_expressions = st.tuples(
    keywords, st.lists(st.tuples(st.sampled_from([" AND ", " OR ", " OR ", " "]), keywords), max_size=8)
).map(lambda parts: parts[0] + "".join(operator + keyword for operator, keyword in parts[1]))

#: Strings of which hardly one in two parses.
doubtful_expressions = st.lists(
    st.sampled_from(
        ["a", "b", "A", "x-y", "AND", "OR", "NOT", "and", "(", ")", "!", "\u00e9", " ", "  ", "\n", "\x00"]
    ),
    max_size=10,
).flatmap(lambda parts: st.sampled_from([" ".join(parts), "".join(parts)]))


def coordinates(bound: float) -> st.SearchStrategy[float]:
    """Draw from [-bound, bound], with a liking for cell edges of grids and what lies a hair beside them."""
    edges = st.integers(0, 5).flatmap(
        lambda k: st.integers(0, 1 << k).map(lambda cell: -bound + 2 * bound / (1 << k) * cell)
    )
    beside = edges.map(lambda edge: math.nextafter(edge, 0.0))
    return st.one_of(edges, edges, beside, st.floats(-bound, bound))


longitudes = coordinates(180.0)
latitudes = coordinates(90.0)

points = st.tuples(longitudes, latitudes)

_latitude_pairs = st.one_of(
    st.tuples(latitudes, latitudes).map(sorted).map(tuple), latitudes.map(lambda lat: (lat, lat))
)
_longitude_pairs = st.one_of(st.tuples(longitudes, longitudes), longitudes.map(lambda lon: (lon, lon)))

#: Valid regions in the order of a bounding box; half of them cross the antimeridian.
regions = st.one_of(
    st.just((-180.0, -90.0, 180.0, 90.0)),
    st.tuples(_longitude_pairs, _latitude_pairs).map(
        lambda pairs: (pairs[0][0], pairs[1][0], pairs[0][1], pairs[1][1])
    ),
)

_BOUNDS = ("min_lon", "min_lat", "max_lon", "max_lat")

subscription_ids = st.sampled_from(["s0", "s1", "s2", "s3", "s\u00fc", "s 5", "s" * MAX_ID_BYTES])

publishes = st.builds(
    lambda name, point, text: EventRow(None, PUBLISH, name, lat=point[1], lon=point[0], text=text),
    st.sampled_from(["p0", "p1", "\u00fc" * (MAX_ID_BYTES // 2)]),
    points,
    st.one_of(texts, texts, texts, marked_texts),
)
subscribes = st.builds(
    lambda name, region, expression: EventRow(None, SUBSCRIBE, name, expression=expression)._replace(
        **dict(zip(_BOUNDS, region, strict=True))
    ),
    subscription_ids,
    regions,
    st.one_of(expressions, flat_expressions),
)
unsubscribes = subscription_ids.map(lambda name: EventRow(None, UNSUBSCRIBE, name))

_bad_numbers = st.sampled_from([None, math.nan, math.inf, -math.inf, 180.5, -1e300])

_bad_fields: list[tuple[str, st.SearchStrategy[Any]]] = [
    ("op", st.sampled_from([None, "", "PUBLISH"])),
    ("id", st.sampled_from([None, "", "i" * (MAX_ID_BYTES + 1), "\u00fc" * MAX_ID_BYTES])),
    ("text", st.sampled_from([None, "fire " * (MAX_TEXT_BYTES // 5 + 1)])),
    ("expression", st.one_of(st.none(), doubtful_expressions, st.just("a " * MAX_EXPRESSION_BYTES))),
    *((name, _bad_numbers) for name in ("lat", "lon", *_BOUNDS)),
]


@st.composite
def broken_events(draw: st.DrawFn) -> EventRow:
    """Draw an event with one field spoiled; it may be one that its operation does not use."""
    event = draw(st.one_of(publishes, subscribes, unsubscribes))
    name, values = draw(st.sampled_from(_bad_fields))
    return event._replace(**{name: draw(values)})


def _weighted(*choices: tuple[st.SearchStrategy[EventRow], int]) -> st.SearchStrategy[EventRow]:
    # Not one_of with repetitions: it sees through them.
    return st.sampled_from([choice for choice, weight in choices for _ in range(weight)]).flatmap(
        lambda one: one
    )


#: Events that have no seq yet; an unsubscribe may come too early.
valid_events = _weighted((publishes, 4), (subscribes, 3), (unsubscribes, 1))
events = _weighted((valid_events, 9), (broken_events(), 1))


def _aimed(draw: st.DrawFn, publication: EventRow, subscription: EventRow) -> EventRow:
    """Move a publication into a corner of a region, with all the keywords that are asked for there."""
    lon = draw(st.sampled_from([subscription.min_lon, subscription.max_lon]))
    lat = draw(st.sampled_from([subscription.min_lat, subscription.max_lat]))
    return publication._replace(lon=lon, lat=lat, text=subscription.expression)


@st.composite
def event_logs(draw: st.DrawFn, max_size: int = 25, *, broken: bool = True) -> pa.Table:
    """Draw a log in the schema of events; unless told not to, with bad fields and seqs out of order.

    Left to chance, hardly any publication would match: most are aimed at a subscription before them,
    and most unsubscribes name one.
    """
    # Lists of any length up to the longest: by itself hypothesis prefers short ones.
    size = draw(st.integers(0, max_size))
    log = draw(st.lists(events if broken else valid_events, min_size=size, max_size=size))
    rows: list[dict[str, Any]] = []
    targets: list[EventRow] = []
    last_seq = 0
    for drawn in log:
        event = drawn
        if event.op == SUBSCRIBE:
            targets.append(event)
        elif targets and draw(st.integers(0, 3)) > 0:
            target = draw(st.sampled_from(targets))
            event = _aimed(draw, event, target) if event.op == PUBLISH else event._replace(id=target.id)
        seq: int | None = last_seq + draw(st.sampled_from([1, 1, 2, 7]))
        if broken and draw(st.integers(0, 15)) == 15:
            seq = draw(st.sampled_from([None, last_seq, last_seq - 2]))
        last_seq = max(last_seq, seq or 0)
        rows.append(event._replace(seq=seq)._asdict())
    return pa.Table.from_pylist(rows, EVENTS)
