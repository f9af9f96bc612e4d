"""The only place that configures numba.

Compiled kernels are kept on disk between runs. numba notices a change of the file that
holds a kernel but not of a kernel or constant it uses from another file, so the cache
directory is named after the contents of all files that have a part in kernels: a stale one
cannot be loaded, and an old version's cache is simply never looked at again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., Any])

# numba fills in its settings at run time, where no type checker sees them.
_config: Any = numba.config


def _cache_directory() -> Path:
    root = os.environ.get("PS2STREAM_CACHE_DIR")
    base = (
        Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "ps2stream"
    )
    sources = hashlib.sha256(f"{numba.__version__}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        if b"import kernel" in source or path.name == "layout.py":
            sources.update(source)
    return base / f"kernels-{sources.hexdigest()[:16]}"


if "NUMBA_CACHE_DIR" not in os.environ:
    _config.CACHE_DIR = str(_cache_directory())


def kernel(function: _Function) -> _Function:
    """Compile a function of flat arrays; it runs without the interpreter lock.

    ``error_model="numpy"`` drops the check for division by zero; kernels check nothing,
    their callers do (``model.events`` is the border).
    """
    if _config.DISABLE_JIT:
        return _plain(function)
    return cast(_Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def _plain(function: _Function) -> _Function:
    """Run a kernel as it is written, with unsigned numbers that wrap round silently, as compiled ones do."""
    return np.errstate(over="ignore")(function)


@kernel
def signed(value: Any) -> int:
    """Take a number of any width as a signed one.

    numba makes a float of the sum of an unsigned and a signed number, and its ``int`` keeps one unsigned.
    """
    return np.int64(value)  # type: ignore[return-value]  # to the rest of a kernel that is an int


def _no_prefetch(array: Any, index: int) -> None:
    """Do nothing: uncompiled kernels wait for memory as they come to it."""


def _compiled_prefetch() -> Callable[[Any, int], None]:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def prefetch(context: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            place = context.make_array(signature.args[0])(context, builder, arguments[0])
            pointer = builder.bitcast(builder.gep(place.data, [arguments[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
            function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
            # To be read, to be kept in all caches, data.
            builder.call(function, [pointer, word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, types.intp), generate

    return cast(Callable[[Any, int], None], prefetch)


#: ``prefetch(array, index)`` asks memory for an element that is needed soon; the index must lie in the array.
prefetch = _no_prefetch if _config.DISABLE_JIT else _compiled_prefetch()


@contextlib.contextmanager
def one_compiler() -> Iterator[None]:
    """Let one process of the host compile while the others wait to load what it compiled."""
    directory = Path(_config.CACHE_DIR)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / "lock").open("a")
    except OSError:  # a read-only home: everybody compiles for himself
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
