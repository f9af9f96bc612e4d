"""Brute force in numpy: every box against every point, then the terms of what is left."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Float64s, Int64s, n_bytes
from ps2stream.text.tokenizer import Tokenizer
from ps2stream_bench.peers.boxes_and_clauses import Interests, interests_of
from ps2stream_bench.peers.containment import ClauseTerms, satisfied
from ps2stream_bench.peers.contract import Restful, pairs_of

#: A tile of boxes and points is tested at once; at this size boxes and flags stay in the processor's cache.
_TILE_BOXES, _TILE_POINTS = 4096, 64


class NumpyScan(Restful):
    """Test all boxes, vectorised; no index at all."""

    name = "numpy scan"

    def __init__(self, stop_words: Iterable[str] = ()) -> None:
        self._tokenizer = Tokenizer(stop_words)
        self._interests: Interests | None = None

    def load(self, subscriptions: pa.Table) -> None:
        self._interests = interests_of(subscriptions, self._tokenizer)
        self._clauses = ClauseTerms.of(self._interests)

    def match(self, publications: pa.Table) -> pa.Table:
        assert self._interests is not None
        interests, clauses = self._interests, self._clauses
        texts = self._tokenizer.tokenize(publications["text"].combine_chunks())
        lon, lat = publications["lon"].to_numpy(), publications["lat"].to_numpy()
        seq = publications["seq"].to_numpy()
        told, of = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for first in range(0, len(seq), _TILE_POINTS):
            end = min(first + _TILE_POINTS, len(seq))
            contents = clauses.contents(texts, first, end)
            row, box = _inside(interests, lon[first:end], lat[first:end])
            kept = satisfied(interests, clauses, contents, row, box)
            told.append(interests.subscription_seq[box[kept]])
            of.append(seq[first + row[kept]])
        return pairs_of(np.concatenate(told), np.concatenate(of))

    def index_bytes(self) -> int | None:
        if self._interests is None:
            return None
        return n_bytes(self._interests) + n_bytes(self._clauses)

    def close(self) -> None:
        self._interests = None


def _inside(interests: Interests, lon: Float64s, lat: Float64s) -> tuple[Int64s, Int64s]:
    """Return which points lie in which boxes, tile by tile of boxes."""
    x, y = lon[:, None], lat[:, None]
    rows, boxes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for first in range(0, len(interests.subscription_seq), _TILE_BOXES):
        tile = slice(first, first + _TILE_BOXES)
        held = interests.min_lon[tile] <= x
        held &= x <= interests.max_lon[tile]
        held &= interests.min_lat[tile] <= y
        held &= y <= interests.max_lat[tile]
        # np.nonzero of two dimensions took three times as long as all the comparisons.
        row, box = np.divmod(np.flatnonzero(held), held.shape[1])
        rows.append(row)
        boxes.append(box + first)
    return np.concatenate(rows), np.concatenate(boxes)
