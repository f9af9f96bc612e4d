"""Cut a box of cells in two, with the publications and subscriptions that it holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Float64s, Int32s, Int64s
from ps2stream.kernels import kernel
from ps2stream.partitioning.kdt_tree import Box
from ps2stream.partitioning.sample import Cells, Digest, Entries, stand


class Held(NamedTuple):
    """A box and the rows of the sample in it: points inside, regions that touch it."""

    box: Box
    publications: Int64s
    subscriptions: Int64s


class Counts(NamedTuple):
    """What a worker that owns something gets of it."""

    n_publications: int
    n_subscriptions: int
    n_looks: float


class Cut(NamedTuple):
    """Where a box is cut: before column (axis 0) or row (axis 1) ``at``."""

    axis: int
    at: int


def count_held(digest: Digest, held: Held) -> Counts:
    """Count what reaches the owner of a box; what nobody there waits for is discarded before."""
    looks = looks_of(digest, held)
    return Counts(int(np.count_nonzero(looks)), len(held.subscriptions), float(looks.sum()))


def looks_of(digest: Digest, held: Held) -> Float64s:
    """Count the looks of each publication of a box: lists that it reads, and live candidates in them."""
    rows = (held.publications, held.subscriptions)
    return _looks(digest.reads, digest.stands, rows, digest.standing, digest.live_weight)


def weights_of(digest: Digest, held: Held, match: float, publication: float) -> Float64s:
    """Return the load that each publication of a box brings: for itself, and for its looks."""
    looks = looks_of(digest, held)
    return match * looks + publication * (looks > 0.0)


def median_cut(cells: Cells, held: Held, axis: int, weights: Float64s) -> Cut | None:
    """Find the line with half of the weight on either side; None where no line divides the publications."""
    position = (cells.column, cells.row)[axis][held.publications]
    first, stop = held.box[axis], held.box[axis + 2]
    if stop - first < 2 or len(position) == 0:
        return None
    along = np.bincount(position - first, weights, stop - first)
    below = np.cumsum(along)[:-1]
    if below[-1] + along[-1] <= 0.0:
        return None
    at = int(np.argmin(np.abs(below - (below[-1] + along[-1]) / 2)))
    # Without any weight on one side nothing would be divided.
    if below[at] <= 0.0 or below[at] >= below[-1] + along[-1]:
        return None
    return Cut(axis, first + at + 1)


def cut_box(cells: Cells, held: Held, cut: Cut) -> tuple[Held, Held]:
    """Cut a box; a region on the line is held on both sides."""
    low, high = held.box.halves(cut.axis, cut.at)
    is_low = (cells.column, cells.row)[cut.axis][held.publications] < cut.at
    return (
        Held(low, held.publications[is_low], touching_box(cells, held.subscriptions, low)),
        Held(high, held.publications[~is_low], touching_box(cells, held.subscriptions, high)),
    )


def touching_box(cells: Cells, subscriptions: Int64s, box: Box) -> Int64s:
    """Return the subscriptions whose regions touch a box."""
    kept: Int64s = subscriptions[_touching(cells, subscriptions, box)]
    return kept


@kernel
def _touching(cells: Cells, subscriptions: Int64s, box: Box) -> np.ndarray:
    keep = np.empty(len(subscriptions), np.bool_)
    for i in range(len(subscriptions)):
        row = subscriptions[i]
        top = cells.first_row[row] + cells.n_rows[row]
        fits = cells.first_row[row] < box.row_stop and top > box.row
        first, stop = cells.first_column[row], cells.first_column[row] + cells.n_columns[row]
        across = first < box.column_stop and stop > box.column
        # Round the antimeridian the columns go on at 0.
        around = stop > cells.grid_columns and stop - cells.grid_columns > box.column
        keep[i] = fits and (across or around)
    return keep


@kernel
def _looks(
    reads: Entries, stands: Entries, rows: tuple[Int64s, Int64s], standing: Int32s, live_weight: float
) -> Float64s:
    publications, subscriptions = rows
    stand(stands, subscriptions, standing, 1)
    looks = np.zeros(len(publications))
    for i in range(len(publications)):
        for j in range(reads.offsets[publications[i]], reads.offsets[publications[i] + 1]):
            n = standing[reads.lists[j]]
            if n:
                looks[i] += 1.0 + live_weight * n
    stand(stands, subscriptions, standing, -1)
    return looks
