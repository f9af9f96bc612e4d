"""What batches show of the loads is told with those that were not told before."""

from __future__ import annotations

from ps2stream.adjusting.controller import Observed
from ps2stream.engines.load_watch import LoadWatch
from ps2stream.model.schemas import empty
from ps2stream.roles.packets import CELL_LOADS, SAMPLED

CELLS = {0: empty(CELL_LOADS)}


def batch(n: int) -> Observed:
    return Observed(n, 2 * n, {}, {0: float(n), 1: 1.0}, [empty(SAMPLED)])


def test_a_batch_with_cells_is_told_with_those_before_it() -> None:
    watch = LoadWatch(every_s=3_600.0)
    assert watch.is_due()
    assert watch.told(batch(1), with_cells=False, is_adjusted=False) is None
    assert watch.told(batch(2), with_cells=False, is_adjusted=False) is None
    told = watch.told(batch(4), with_cells=True, is_adjusted=False)
    assert told is not None
    assert (told.n_publications, told.n_updates, told.busy_s) == (7, 14, {0: 7.0, 1: 3.0})
    assert len(told.sampled) == 3
    assert not watch.is_due()
    again = watch.told(batch(8), with_cells=True, is_adjusted=False)
    assert again is not None
    assert again.n_publications == 8


def test_where_every_batch_is_due_each_is_told_by_itself() -> None:
    watch = LoadWatch()
    for n in (1, 2):
        assert watch.is_due()
        told = watch.told(batch(n), with_cells=True, is_adjusted=n == 2)
        assert told is not None
        assert told.n_publications == n


def test_what_gathered_before_an_adjustment_is_forgotten_with_the_cells_that_have_it() -> None:
    watch = LoadWatch(every_s=3_600.0)
    watch.told(batch(1), with_cells=False, is_adjusted=False)
    assert watch.told(batch(2), with_cells=True, is_adjusted=True) is None
    told = watch.told(batch(4), with_cells=True, is_adjusted=False)
    assert told is not None
    assert told.n_publications == 4
