"""The only package that knows numba: how kernels are compiled, and how they are kept.

A kernel is a function of flat arrays. Called from Python it is compiled whole, with all kernels that it
calls, and kept on disk; called from another kernel it is a part of that one and is neither finished nor kept
by itself (:mod:`~ps2stream.kernels.parts`).

What is kept goes by a fingerprint of all that decides what the kernel compiles to: its code, the code of the
kernels that it calls, and the constants that they use (:mod:`~ps2stream.kernels.fingerprints`). numba's own
cache goes by the file that holds the kernel, and would load what was compiled with an old constant of another
file. So nothing stale is ever loaded, and after an edit only what was edited is compiled again.

The disk is a convenience. Where it cannot be used or cannot be trusted, kernels are compiled by every process
for itself (:mod:`~ps2stream.kernels.cache`).
"""

from __future__ import annotations

from ps2stream.kernels.cache import one_compiler
from ps2stream.kernels.compiling import compilation_watched, kernel
from ps2stream.kernels.intrinsics import copy, copy_word, prefetch, signed

__all__ = ["compilation_watched", "copy", "copy_word", "kernel", "one_compiler", "prefetch", "signed"]
