"""A sample of the recent past, from what a job leaves behind: nobody has to ask the job itself.

A journal has the newest publications, until it is pruned; the subscription log has who lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.config import Settings
from ps2stream.errors import StateError
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_events
from ps2stream.matching.contract import Subscriptions
from ps2stream.model.schemas import PUBLISH, empty
from ps2stream.partitioning.sample import Sample
from ps2stream.planning.first_plan import sample_of
from ps2stream.planning.sampling import draw
from ps2stream.registry.segments import BEGIN, END, SEGMENT, changes, subscriptions_of

#: This many packets are asked for their sizes at once.
_SPANS_AT_ONCE = 4_096


class Living(NamedTuple):
    """Some of the live subscriptions, and how many there are."""

    subs: Subscriptions
    n_live: int


class SegmentLog(Protocol):
    """A log of segments that somebody may be writing."""

    def base(self) -> int:
        """Return what changes when a snapshot replaces a part of it."""
        ...

    def read(self) -> Iterator[tuple[int, pa.RecordBatch]]: ...


def sample_on_disk(newest: Iterable[pa.RecordBatch], log: SegmentLog, settings: Settings) -> Sample:
    """Draw publications from the newest events of a stream, and subscriptions from those that live.

    How many of each, and from how many events, is as for a plan that is made from the front of a stream.
    """
    drawn = draw(newest, settings.sample_events, settings.sample_seed)
    publications = drawn.events.filter(pc.equal(drawn.events.column("op"), PUBLISH))
    living = some_living(log, settings.sample_events // 2, settings.sample_seed)
    return sample_of(publications, settings)._replace(
        bounds=living.subs.bounds,
        clause_offsets=living.subs.clause_offsets,
        term_offsets=living.subs.term_offsets,
        clause_terms=living.subs.terms,
        n_live=living.n_live,
        churn=drawn.mix.churn,
    )


def newest_events(journal: Journal, n_events: int) -> Iterator[pa.RecordBatch]:
    """Read the newest events of a journal, this many or some more, as packets hold several."""
    newest = journal.last().position
    return map(decode_events, journal.read(_start(journal, newest, n_events), newest))


def some_living(log: SegmentLog, n: int, seed: int) -> Living:
    """Draw subscriptions that live after the last batch of a log."""
    segments = _segments(log)
    begun = _seqs(segments, BEGIN)
    live = np.setdiff1d(begun, _seqs(segments, END))
    chosen = live
    if len(live) > n:
        chosen = np.random.default_rng(seed).choice(live, n, replace=False)
    rows = [empty(SEGMENT)]
    for segment in segments:
        begins = changes(segment, BEGIN)
        rows.append(begins.filter(pa.array(np.isin(begins.column("seq_from").to_numpy(), chosen))))
    return Living(subscriptions_of(pa.concat_batches(rows)), len(live))


def _start(journal: Journal, newest: int, n_events: int) -> int:
    """Return the position beyond which the newest events lie."""
    after, n_found, oldest = newest, 0, journal.oldest()
    while after >= oldest and n_found < n_events:
        upto, after = after, max(oldest - 1, after - _SPANS_AT_ONCE)
        for span in reversed(journal.spans(after, upto)):
            n_found += span.n_events
            if n_found >= n_events:
                return span.position - 1
    return after


def _segments(log: SegmentLog) -> list[pa.RecordBatch]:
    """Read the whole log; once more if a snapshot replaced it meanwhile."""
    while True:
        base = log.base()
        try:
            return [segment for _, segment in log.read()]
        except StateError:
            if log.base() == base:
                raise


def _seqs(segments: list[pa.RecordBatch], change: int) -> np.ndarray:
    parts = [changes(segment, change).column("seq_from").to_numpy() for segment in segments]
    return np.concatenate([np.empty(0, np.int64), *parts])
