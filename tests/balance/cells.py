"""What happens in a cell, and what workers report of theirs, made up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ps2stream.arrays import Ragged, frozen
from ps2stream.balance.loads import CellTable
from ps2stream.partitioning.sample import Sample

Texts = Sequence[Sequence[int]]


def cell_sample(texts: Texts, posted: Texts) -> Sample:
    """Let everything happen at one point; a subscription is known by the terms it is posted under."""
    words = [sorted(set(text)) for text in texts]
    return Sample(
        frozen(np.full(len(words), 3.0)),
        frozen(np.full(len(words), 4.0)),
        Ragged(
            frozen(np.array([word for text in words for word in text], np.uint64)),
            frozen(np.cumsum([0, *map(len, words)], dtype=np.int64)),
        ),
        frozen(np.tile([2.0, 3.0, 5.0, 6.0], len(posted))),
        frozen(np.cumsum([0, *map(len, posted)], dtype=np.int64)),
        frozen(np.arange(sum(map(len, posted)) + 1)),
        frozen(np.array([term for terms in posted for term in terms], np.uint64)),
        n_live=3 * len(posted),
    )


def posted_only(sample: Sample) -> Sample:
    """Keep the first term of each clause, as evidence of a cell does."""
    return sample._replace(
        clause_terms=sample.clause_terms[sample.term_offsets[:-1]],
        term_offsets=frozen(np.arange(len(sample.term_offsets))),
    )


def cell_table(loads: dict[int, float], sizes: dict[int, int] | None = None) -> CellTable:
    """Report the loads of cells, and their bytes (1,000 each unless told)."""
    cells = sorted(loads)
    none = np.zeros(len(cells), np.int64)
    return CellTable(
        np.array(cells, np.int64),
        np.array([loads[cell] for cell in cells], np.float64),
        np.array([(sizes or {}).get(cell, 1000) for cell in cells], np.int64),
        none,
        none,
        none,
        none.astype(np.float64),
    )
