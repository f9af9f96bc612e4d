"""What kernels can do beyond plain Python."""

from __future__ import annotations

from typing import Any

import numba
import numba.extending
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]

from ps2stream.kernels.compiling import kernel


@kernel
def signed(value: Any) -> int:
    """Take a number of any width as a signed one.

    numba makes a float of the sum of an unsigned and a signed number, and its ``int`` keeps one unsigned.
    """
    return np.int64(value)  # type: ignore[return-value]  # to the rest of a kernel that is an int


@kernel
def copy(target: Any, source: Any, n: int) -> None:
    """Copy the first entries of one array to another.

    For a slice that is assigned to another, numba compiles what words an error about their lengths needs: 40
    functions that handle strings.
    """
    for i in range(n):
        target[i] = source[i]


def prefetch(array: Any, index: int) -> None:
    """Ask for the cache line of an entry ahead of its use, so that several misses overlap.

    An access that waits for memory took 180 ns where these kernels were measured, one that was prefetched a
    tenth of it. Uncompiled it does nothing. The index is not checked, but a wrong one does no harm.
    """


def copy_word(target: Any, to: int, source: Any, at: int) -> None:
    """Copy eight bytes at once from one array of bytes to another, at any alignment."""
    target[to : to + 8] = source[at : at + 8]


@numba.extending.intrinsic  # type: ignore[untyped-decorator]  # numba has no types
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


@numba.extending.intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _copy_word_code(typing: Any, target: Any, to: Any, source: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64).as_pointer()
        into = builder.bitcast(_address(context, builder, signature, arguments, 0), word)
        out_of = builder.bitcast(_address(context, builder, signature, arguments, 2), word)
        builder.store(builder.load(out_of, align=1), into, align=1)
        return context.get_dummy_value()

    return numba.void(target, numba.int64, source, numba.int64), generate


def _address(context: Any, builder: Any, signature: Any, arguments: Any, argument: int) -> Any:
    """Return where an entry lies; the arguments from ``argument`` on are its array and its index."""
    array = context.make_array(signature.args[argument])(context, builder, arguments[argument])
    return builder.gep(array.data, [arguments[argument + 1]])


@numba.extending.overload(prefetch, strict=False)  # type: ignore[untyped-decorator]
def _prefetch(array: Any, index: Any) -> Any:
    # numba itself gives the first argument of an intrinsic.
    return lambda array, index: _prefetch_code(array, index)


@numba.extending.overload(copy_word, strict=False)  # type: ignore[untyped-decorator]
def _copy_word(target: Any, to: Any, source: Any, at: Any) -> Any:
    return lambda target, to, source, at: _copy_word_code(target, to, source, at)
