"""The mark of a worker's home says what its index has, or is not trusted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ps2stream.model.space import Grid
from ps2stream.state import worker_home
from ps2stream.state.worker_home import WorkerHome
from state.jobs import Job

_sides = st.floats(1e-9, 1e12)
_grids = st.builds(Grid, st.floats(-180, 180), st.floats(-90, 90), _sides, _sides, st.integers(0, 12))


@given(_grids)
def test_the_grid_of_a_mark_is_read_as_it_was_written(grid: Grid) -> None:
    assert worker_home._grid_of(worker_home._text_of(grid)) == grid
    assert len(worker_home._text_of(grid).split()) == 1


@pytest.mark.parametrize("mark", ["", "garbage", "boot", "boot x", "boot 1", "boot 1 0x1p0,0x1p0,x,0x1p0,3"])
def test_a_mark_that_makes_no_sense_is_not_trusted(job: Job, rebuilds: list[WorkerHome], mark: str) -> None:
    assert job.matches() == job.expected
    (job.arrays.parent / "clean").write_text(mark.replace("boot", worker_home.boot_id()))
    assert job.matches() == job.expected
    assert len(rebuilds) == 2
