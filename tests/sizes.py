"""Sizes for kernels that run as plain Python: there a test shows what few cases and small ones show.

That run is for what compiled code does silently, an index out of bounds above all. The compiled run of the
same test has all examples and the full size.
"""

from __future__ import annotations

import os

IS_PLAIN = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def examples(n: int) -> int:
    """Return how many examples a law is tried on: ``n``, or a quarter as plain Python."""
    return max(3, n // 4) if IS_PLAIN else n


def sized(compiled: int, plain: int) -> int:
    return plain if IS_PLAIN else compiled
