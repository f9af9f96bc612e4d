"""Streams of events: the paper's mix of publications and updates, and Q3 that drifts.

Five publications come with one update, half of the updates being subscribes, and as many subscriptions
stay alive as there were at first.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Flags, Int64s
from ps2stream.model.schemas import EVENTS, PUBLISH, UNSUBSCRIBE
from ps2stream_bench.workloads.corpus import Corpus
from ps2stream_bench.workloads.events import events_of, numbered
from ps2stream_bench.workloads.regions import busy_by_interval, kinds_by_interval, region_of
from ps2stream_bench.workloads.subscriptions import PLAIN, Kind, Shape, subscribe_events, subscribes_at

_PUBLICATIONS_PER_SUBSCRIBE = 10


def publish_events(corpus: Corpus, n: int, first_seq: int, seed: int) -> pa.Table:
    """Draw ``n`` publications of the corpus, with repetition, and number them from ``first_seq``."""
    return _publishes(corpus, _drawn(corpus, n, seed), first_seq)


def mixed_events(
    corpus: Corpus, kind: Kind, n_live: int, n_publications: int, seed: int, *, shape: Shape = PLAIN
) -> pa.Table:
    """Make the paper's stream: ``n_live`` subscriptions, then publications and updates at 5 to 1.

    Ten publications come with one subscribe and one unsubscribe. A subscription lives for
    N(mu, (0.2 mu)^2) further subscribes with mu = ``n_live``, so as many stay alive.
    """
    n_subscribes = n_live + n_publications // _PUBLICATIONS_PER_SUBSCRIBE
    subscribes = subscribe_events(corpus, kind, n_subscribes, seed, shape=shape)
    return _interleaved(subscribes, publish_events(corpus, n_publications, 0, seed), n_live, seed)


def drifting_events(
    corpus: Corpus,
    n_live: int,
    n_publications: int,
    seed: int,
    *,
    n_intervals: int,
    share: float = 0.1,
    rush: float = 1.0,
) -> pa.Table:
    """Make a Q3 stream like that of :func:`mixed_events`, cut into equal intervals that differ.

    From each interval to the next a ``share`` of the regions changes its kind, for the subscriptions that
    begin afterwards; the first ``n_live`` belong to the first interval. In the paper an interval lasts as
    long as a life, which is ``10 * n_live`` publications here. A shorter one replaces fewer subscriptions.

    The paper moves kinds only. With a ``rush`` above 1, publications and new subscriptions of the regions
    that are busy in an interval come that many times as often as the corpus has them.
    """
    n_swaps = n_publications // _PUBLICATIONS_PER_SUBSCRIBE
    begun = np.concatenate([np.zeros(n_live, np.int64), _intervals(n_swaps, n_intervals)])
    # Drawn as mixed_events draws them: what has not drifted is the same.
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, len(corpus.lon), len(begun))
    at = _drawn(corpus, n_publications, seed)
    region = region_of(corpus, corpus.lon, corpus.lat)
    is_busy = busy_by_interval(seed, n_intervals)[:, region]
    rush_rng = np.random.default_rng([seed, 6])
    _crowd(centres, begun, is_busy, rush, rush_rng)
    _crowd(at, _intervals(n_publications, n_intervals), is_busy, rush, rush_rng)
    is_q2 = kinds_by_interval(seed, n_intervals, share)[begun, region[centres]]
    subscribes = subscribes_at(corpus, centres, is_q2, rng)
    return _interleaved(subscribes, _publishes(corpus, at, 0), n_live, seed)


def _drawn(corpus: Corpus, n: int, seed: int) -> Int64s:
    """Draw texts independently of the centres of subscriptions, which the bare seed draws."""
    return np.random.default_rng([seed, 2]).integers(0, len(corpus.lon), n)


def _publishes(corpus: Corpus, at: Int64s, first_seq: int) -> pa.Table:
    n = len(at)
    seq = np.arange(first_seq, first_seq + n)
    columns = {
        "seq": pa.array(seq),
        "op": pa.repeat(PUBLISH, n),
        "id": numbered("p", seq),
        "lat": pa.array(corpus.lat[at]),
        "lon": pa.array(corpus.lon[at]),
        "text": corpus.texts.take(pa.array(at)),
    }
    return events_of(columns, n)


def _interleaved(subscribes: pa.Table, publishes: pa.Table, n_live: int, seed: int) -> pa.Table:
    """Put ``n_live`` subscriptions first; one more begins and one ends with every ten publications."""
    rng = np.random.default_rng([seed, 1])
    n_swaps = subscribes.num_rows - n_live
    births = np.arange(subscribes.num_rows)
    lives = np.clip(rng.normal(n_live, 0.2 * n_live, len(births)), 0.5 * n_live, 1.5 * n_live)
    ending = np.argsort(births + lives, kind="stable")[:n_swaps]
    ended = subscribes["id"].combine_chunks().take(pa.array(ending))
    unsubscribes = events_of({"op": pa.repeat(UNSUBSCRIBE, n_swaps), "id": ended}, n_swaps)
    # When each event happens, counted in publications.
    due = float(_PUBLICATIONS_PER_SUBSCRIBE) * np.arange(1, n_swaps + 1)
    before = np.full(n_live, -1.0)
    when = np.concatenate([before, due - 5.5, np.arange(publishes.num_rows), due - 0.5])
    order = np.argsort(when, kind="stable")
    events = pa.concat_tables([subscribes, publishes, unsubscribes]).take(pa.array(order)).combine_chunks()
    return events.set_column(0, EVENTS.field("seq"), pa.array(np.arange(1, events.num_rows + 1)))


def _intervals(n: int, n_intervals: int) -> Int64s:
    """Number the interval that each of ``n`` events lies in."""
    return np.arange(n) * n_intervals // n


def _crowd(drawn: Int64s, interval: Int64s, is_busy: Flags, rush: float, rng: np.random.Generator) -> None:
    """Redraw some of what was drawn evenly so that busy publications come ``rush`` times as often.

    ``is_busy`` has a row for each interval and a column for each publication of the corpus.
    """
    for each, flags in enumerate(is_busy):
        busy = np.flatnonzero(flags)
        extra = (rush - 1.0) * len(busy)
        redrawn = np.flatnonzero((interval == each) & (rng.random(len(drawn)) < extra / (len(flags) + extra)))
        drawn[redrawn] = rng.choice(busy, len(redrawn))
