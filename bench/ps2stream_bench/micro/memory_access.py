"""What memory costs: one cache line at a random address, waited for or prefetched, and many in a row."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from ps2stream.arrays import Int64s
from ps2stream.kernels import kernel, prefetch

_WORDS_OF_LINE = 8
_AHEAD = 32


class MemoryCosts(NamedTuple):
    """Nanoseconds of a cache line."""

    waited_ns: float
    prefetched_ns: float
    in_a_row_ns: float


@kernel
def wait_for(memory: Int64s, lines: Int64s) -> int:
    """Read lines one after the other; each address depends on what the one before held."""
    last = 0
    for i in range(len(lines)):
        last = memory[_WORDS_OF_LINE * lines[i] + (last & 7)]
    return last


@kernel
def prefetch_ahead(memory: Int64s, lines: Int64s) -> int:
    """Read the same lines, each prefetched some accesses ahead."""
    last = 0
    for i in range(len(lines)):
        prefetch(memory, _WORDS_OF_LINE * lines[min(i + _AHEAD, len(lines) - 1)])
        last = memory[_WORDS_OF_LINE * lines[i] + (last & 7)]
    return last


@kernel
def read_in_a_row(memory: Int64s) -> int:
    """Read all there is."""
    total = 0
    for i in range(len(memory)):
        total += memory[i]
    return total


def memory_costs(n_bytes: int, n_accesses: int, seed: int) -> MemoryCosts:
    """Measure on an array of this size, in processor time."""
    memory = np.zeros(max(n_bytes // 8, 64) // _WORDS_OF_LINE * _WORDS_OF_LINE, np.int64)
    memory[:] = 0  # every page is there before the clock starts
    lines = np.random.default_rng([seed, 3]).integers(0, len(memory) // _WORDS_OF_LINE, n_accesses)
    for action in (wait_for, prefetch_ahead):
        action(memory, lines[:2])
    read_in_a_row(memory[:64])
    started = time.process_time()
    wait_for(memory, lines)
    waited = time.process_time()
    prefetch_ahead(memory, lines)
    prefetched = time.process_time()
    read_in_a_row(memory)
    read = time.process_time()
    return MemoryCosts(
        (waited - started) / n_accesses * 1e9,
        (prefetched - waited) / n_accesses * 1e9,
        (read - prefetched) / (len(memory) // _WORDS_OF_LINE) * 1e9,
    )
