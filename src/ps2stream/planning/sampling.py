"""Draw a sample of a stream: uniform, and the same for the same events and seed.

Publications and subscriptions are drawn apart, because a plan needs to see both kinds and a log often begins
with nothing but subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ps2stream.arrays import Float64s
from ps2stream.model.schemas import EVENTS, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, empty
from ps2stream.partitioning.sample import CHURN

_Mask = npt.NDArray[np.bool_]


class Mix(NamedTuple):
    """How a stream is mixed: the subscriptions that live, and those that begin (or end) for a publication.

    A subscription that is replaced counts twice as living: to tell, all ids would have to be remembered.
    """

    n_live: int
    churn: float


class Drawn(NamedTuple):
    """Publish and subscribe events in the order of their seq, and the mix of what they were drawn from."""

    events: pa.RecordBatch
    mix: Mix


def draw(batches: Iterable[pa.RecordBatch], n_events: int, seed: int, *, prefix: int | None = None) -> Drawn:
    """Draw up to half of ``n_events`` publications and as many subscribe events.

    The first ``prefix`` events are looked at, and those beyond only for as long as one kind has not filled
    its half; without a prefix all are.
    """
    publications = Reservoir(n_events - n_events // 2, (seed, 0))
    subscriptions = Reservoir(n_events // 2, (seed, 1))
    mixture = _Mixture()
    if n_events:
        for batch in _cut(batches, prefix):
            kinds = [_is(batch, op) for op in (PUBLISH, SUBSCRIBE, UNSUBSCRIBE)]
            mixture.add(*kinds)
            publications.add(batch.filter(pa.array(kinds[0])))
            subscriptions.add(batch.filter(pa.array(kinds[1])))
            reached = prefix is not None and mixture.n_events >= prefix
            if reached and publications.is_full and subscriptions.is_full:
                break
    rows = pa.concat_batches([publications.rows(), subscriptions.rows()])
    return Drawn(rows.sort_by("seq"), mixture.mix())


class Reservoir:
    """Hold ``size`` of all rows that were added, each choice of this many as likely as any other.

    Every row draws a key, and the smallest keys stay. Keys are drawn row after row, so it does not matter how
    a stream is cut into batches; and rows are only copied while their keys are small enough, which soon
    hardly any are.
    """

    def __init__(self, size: int, seed: int | Sequence[int]) -> None:
        self._size = size
        self._random = np.random.default_rng(seed)
        # Keys are below 1; what is not below the largest key of a full reservoir has no chance.
        self._bar = 1.0 if size else 0.0
        self._keys: list[Float64s] = []
        self._parts = [empty(EVENTS)]
        self._n_held = 0
        self._n_added = 0

    @property
    def is_full(self) -> bool:
        return self._n_added >= self._size

    def add(self, batch: pa.RecordBatch) -> None:
        """Offer rows."""
        self._n_added += batch.num_rows
        keys = self._random.random(batch.num_rows)
        taken = keys < self._bar
        self._keys.append(keys[taken])
        self._parts.append(batch.filter(pa.array(taken)))
        self._n_held += self._parts[-1].num_rows
        if self._n_held > 2 * self._size:
            self._shrink()

    def rows(self) -> pa.RecordBatch:
        """Return what is held, in the order in which it was added."""
        self._shrink()
        return pa.concat_batches(self._parts)

    def _shrink(self) -> None:
        if self._n_held <= self._size:
            return
        keys = np.concatenate(self._keys)
        # Stable: of equal keys the earlier row stays, as it does where the later one meets the bar.
        smallest = np.argsort(keys, kind="stable")[: self._size]
        self._bar = float(keys[smallest[-1]]) if self._size else 0.0
        smallest.sort()
        self._keys = [keys[smallest]]
        self._parts = [pa.concat_batches(self._parts).take(pa.array(smallest))]
        self._n_held = self._size


class _Mixture:
    """Count the kinds of events."""

    def __init__(self) -> None:
        self.n_events = 0
        self._n_publications = 0
        self._n_live = 0
        self._n_updates = 0  # since the first publication

    def add(self, is_publish: _Mask, is_subscribe: _Mask, is_unsubscribe: _Mask) -> None:
        self.n_events += len(is_publish)
        self._n_live += int(is_subscribe.sum()) - int(is_unsubscribe.sum())
        # What is subscribed before anything is published is loaded: no sign of what a running stream is like.
        began = 0 if self._n_publications else _first(is_publish)
        self._n_publications += int(is_publish.sum())
        self._n_updates += int(is_subscribe[began:].sum()) + int(is_unsubscribe[began:].sum())

    def mix(self) -> Mix:
        """Return the mix; where nothing was published the paper's churn."""
        churn = self._n_updates / self._n_publications / 2 if self._n_publications else CHURN
        return Mix(max(self._n_live, 0), churn)


def _first(mask: _Mask) -> int:
    return int(mask.argmax()) if mask.any() else len(mask)


def _is(batch: pa.RecordBatch, op: str) -> _Mask:
    mask: _Mask = pc.fill_null(pc.equal(batch.column("op"), op), False).to_numpy(zero_copy_only=False)
    return mask


def _cut(batches: Iterable[pa.RecordBatch], at: int | None) -> Iterator[pa.RecordBatch]:
    """Let one batch end exactly ``at`` events from the start."""
    n_before = 0
    for batch in batches:
        n_left = batch.num_rows if at is None else at - n_before
        if 0 < n_left < batch.num_rows:
            yield batch.slice(0, n_left)
            yield batch.slice(n_left)
        else:
            yield batch
        n_before += batch.num_rows
