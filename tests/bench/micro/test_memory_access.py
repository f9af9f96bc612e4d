"""Memory is read as it is said to be."""

import numpy as np
import pytest

from ps2stream_bench.micro.memory_access import memory_costs, prefetch_ahead, read_in_a_row, wait_for


def test_lines_are_read_one_by_one_whether_announced_or_not() -> None:
    memory = np.zeros(8 * 100, np.int64)
    memory[8 * 7] = 3  # the next line is read at its fourth word
    memory[8 * 9 + 3] = 5
    memory[8 * 9] = 6
    lines = np.array([7, 9])
    assert wait_for(memory, lines) == prefetch_ahead(memory, lines) == 5
    assert wait_for(memory, lines[1:]) == prefetch_ahead(memory, lines[1:]) == 6
    assert read_in_a_row(memory) == 14


@pytest.mark.parametrize("n_bytes", [0, 1000, 1 << 20])
def test_costs_are_those_of_a_line(n_bytes: int) -> None:
    costs = memory_costs(n_bytes, 20_000, seed=1)
    assert all(0 <= cost < 1e6 for cost in costs)
    assert costs.waited_ns > 0
