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
import numba.extending
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]

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
        if b"ps2stream.kernels import" in source or path.name in ("kernels.py", "layout.py"):
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


def prefetch(array: Any, index: int) -> None:
    """Ask for the cache line of an entry ahead of its use, so that several misses overlap.

    An access that waits for memory took 180 ns where these kernels were measured, one that was prefetched a
    tenth of it. Uncompiled it does nothing. The index is not checked, but a wrong one does no harm.
    """


def copy_word(target: Any, to: int, source: Any, at: int) -> None:
    """Copy eight bytes at once from one array of bytes to another, at any alignment."""
    target[to : to + 8] = source[at : at + 8]


@numba.extending.intrinsic
def _prefetch_code(typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature, arguments, 0)
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # To read it, to keep it, and as data.
        builder.call(function, [builder.bitcast(address, byte), flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return numba.void(array, numba.int64), generate


@numba.extending.intrinsic
def _copy_word_code(typing: Any, target: Any, to: Any, source: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64).as_pointer()
        into = builder.bitcast(_address(context, builder, signature, arguments, 0), word)
        out_of = builder.bitcast(_address(context, builder, signature, arguments, 2), word)
        builder.store(builder.load(out_of, align=1), into, align=1)
        return context.get_dummy_value()

    return numba.void(target, numba.int64, source, numba.int64), generate


def _address(context: Any, builder: Any, signature: Any, arguments: Any, place: int) -> Any:
    """Return where an entry lies; the arguments from ``place`` on are its array and its index."""
    array = context.make_array(signature.args[place])(context, builder, arguments[place])
    return builder.gep(array.data, [arguments[place + 1]])


@numba.extending.overload(prefetch, strict=False)
def _prefetch(array: Any, index: Any) -> Any:
    # numba itself gives the first argument of an intrinsic.
    return lambda array, index: _prefetch_code(array, index)  # type: ignore[call-arg]


@numba.extending.overload(copy_word, strict=False)
def _copy_word(target: Any, to: Any, source: Any, at: Any) -> Any:
    return lambda target, to, source, at: _copy_word_code(target, to, source, at)  # type: ignore[call-arg]


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
