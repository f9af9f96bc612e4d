"""A frame is cut into cells that cover it."""

import numpy as np

from ps2stream_bench.workloads import Frame

FRAME = Frame(10.0, 50.0, 12.5, 51.0)


def test_cells_are_numbered_by_row_from_the_south_west() -> None:
    assert FRAME.n_cells(1.0) == 3
    assert FRAME.n_cells(0.5) == 10
    lon, lat = np.array([10.0, 11.2, 12.5, 10.1]), np.array([50.0, 50.1, 51.0, 50.6])
    assert FRAME.cell_of(lon, lat, 0.5).tolist() == [0, 2, 9, 5]


def test_points_outside_are_told_and_belong_to_the_nearest_cell() -> None:
    lon, lat = np.array([9.0, 10.0, 12.6]), np.array([50.0, 51.0, 49.0])
    assert FRAME.holds(lon, lat).tolist() == [False, True, False]
    assert FRAME.cell_of(lon, lat, 0.5).tolist() == [0, 5, 4]
