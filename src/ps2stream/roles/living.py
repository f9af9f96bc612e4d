"""What lives after a batch, as a snapshot of the log has it.

All that it takes is what does not change any more: rows as they were written, the seqs of those that live,
and plans. So a snapshot may be made while the registrar decides on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.arrays import Flags, Int64s, frozen
from ps2stream.arrow import concat, pick
from ps2stream.errors import StateError
from ps2stream.model.schemas import empty
from ps2stream.registry.segments import BEGIN, SEGMENT, begin_rows, changes, subscriptions_of
from ps2stream.roles.migration import first_terms, workers_column
from ps2stream.routing.index import GridT
from ps2stream.routing.layout import Postings
from ps2stream.routing.routing import PlanNumbers, Routing
from ps2stream.text.frequencies import rarest_first


class Living(NamedTuple):
    """The seqs of the subscriptions that live, ascending, and what they are routed by."""

    seqs: Int64s
    routing: Routing[GridT]

    @property
    def plan_numbers(self) -> PlanNumbers:
        return self.routing.map(lambda grid_t: grid_t.plan.number)

    def rows(self, segments: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
        """Return the rows of a snapshot; segments, in the order of the log, have all that lives."""
        # Joined first: to look into each of thousands of small segments takes longer than all the rest.
        begun = changes(pa.concat_batches([empty(SEGMENT), *segments]), BEGIN)
        live = pick(begun, self._have(begun.column("seq_from").to_numpy()))
        if live.num_rows != len(self.seqs):  # what a snapshot lacks is lost for good
            raise StateError(
                f"the log must begin each of the {len(self.seqs):,} subscriptions that live once; "
                f"it has {live.num_rows:,}"
            )
        return as_stored(live, self.routing)

    def _have(self, seqs: Int64s) -> Flags:
        if not len(self.seqs):
            return np.zeros(len(seqs), np.bool_)
        at = np.minimum(np.searchsorted(self.seqs, seqs), len(self.seqs) - 1)
        found: Flags = self.seqs[at] == seqs
        return found


def as_stored(begun: pa.RecordBatch, routing: Routing[GridT]) -> pa.RecordBatch:
    """Bring rows that began subscriptions up to date with what was moved since."""
    parts = []
    is_older = begun.column("seq_from").to_numpy() <= routing.switch_seq
    for grid_t, rows in zip(routing.parts, (~is_older, is_older), strict=False):
        part = pick(begun, rows)
        subs = subscriptions_of(part)
        terms = subs.terms.copy()
        rarest_first(terms, subs.term_offsets, grid_t.plan.frequencies)
        subs = subs._replace(terms=terms)
        # A subscription is posted under the rarest terms by the plan that it goes by.
        postings = Postings(frozen(subs.bounds), frozen(subs.clause_offsets), first_terms(subs))
        workers = workers_column(grid_t.marks_of(postings))
        parts.append(begin_rows(subs, part.column("id"), part.column("expression"), workers))
    rows = concat(parts)
    # In order but for what an older plan holds; sorting takes longer than all the rest.
    is_sorted = bool((np.diff(rows.column("seq_from").to_numpy()) > 0).all())
    return rows if is_sorted else rows.sort_by("seq_from")
