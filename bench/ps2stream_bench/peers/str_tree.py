"""A shapely STRtree over the boxes, then the terms of what it finds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import shapely

from ps2stream.text.tokenizer import Tokenizer
from ps2stream_bench.peers.boxes_and_clauses import Interests, interests_of
from ps2stream_bench.peers.containment import ClauseTerms, satisfied
from ps2stream_bench.peers.contract import Restful, pairs_of

#: This many points are asked for at once: their hits fit into memory however many boxes there are.
_BLOCK_POINTS = 512


class StrTree(Restful):
    """Find boxes with a tree of envelopes.

    Terms are tested in numpy, as in the scan: with a frozenset for each clause, and a loop in Python over the
    hits, it took ten times as long.
    """

    name = "shapely STRtree"

    def __init__(self, stop_words: Iterable[str] = ()) -> None:
        self._tokenizer = Tokenizer(stop_words)
        self._tree: shapely.STRtree | None = None

    def load(self, subscriptions: pa.Table) -> None:
        self._interests: Interests = interests_of(subscriptions, self._tokenizer)
        self._clauses = ClauseTerms.of(self._interests)
        _, min_lon, min_lat, max_lon, max_lat = self._interests[:5]
        self._tree = shapely.STRtree(shapely.box(min_lon, min_lat, max_lon, max_lat))
        # The tree is built by the first question that it is asked.
        self._tree.query(shapely.Point(0.0, 0.0))

    def match(self, publications: pa.Table) -> pa.Table:
        assert self._tree is not None
        interests, clauses = self._interests, self._clauses
        texts = self._tokenizer.tokenize(publications["text"].combine_chunks())
        points = shapely.points(publications["lon"].to_numpy(), publications["lat"].to_numpy())
        seq = publications["seq"].to_numpy()
        told, of = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for first in range(0, len(seq), _BLOCK_POINTS):
            end = min(first + _BLOCK_POINTS, len(seq))
            # Without a predicate envelopes are compared, and a box is its own envelope, edges included.
            row, box = self._tree.query(points[first:end])
            kept = satisfied(interests, clauses, clauses.contents(texts, first, end), row, box)
            told.append(interests.subscription_seq[box[kept]])
            of.append(seq[first + row[kept]])
        return pairs_of(np.concatenate(told), np.concatenate(of))

    def index_bytes(self) -> int | None:
        # Neither shapely nor GEOS tells.
        return None

    def close(self) -> None:
        self._tree = None
