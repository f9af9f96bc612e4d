"""Compile functions of flat arrays."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numba
import numba.core.event
import numpy as np
from numba.core.registry import CPUDispatcher

from ps2stream.kernels.cache import KernelCache
from ps2stream.kernels.parts import WholeCompiler

_Function = TypeVar("_Function", bound=Callable[..., Any])

# numba fills in its settings at run time, where no type checker sees them.
_config: Any = numba.config
#: ``error_model="numpy"`` drops the check for division by zero; kernels check nothing, their callers do
#: (``model.events`` is the border). Nobody calls kernels from C.
_OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: _Function) -> _Function:
    """Compile a function of flat arrays; it runs without the interpreter lock."""
    if _config.DISABLE_JIT:
        return _plain(function)
    return cast(_Function, Kernel(function, targetoptions=_OPTIONS))


def _plain(function: _Function) -> _Function:
    """Run a kernel as it is written, with unsigned numbers that wrap round silently, as compiled ones do."""
    return np.errstate(over="ignore")(function)


class Kernel(CPUDispatcher):  # type: ignore[misc]  # numba has no types
    """A kernel as Python sees it: whole, and kept on disk."""

    n_known = 0

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals or {}, targetoptions, pipeline_class=WholeCompiler)
        self._cache = KernelCache(py_func)
        Kernel.n_known += 1

    @functools.cached_property
    def _part(self) -> KernelPart:
        options = {**self.targetoptions, "no_cpython_wrapper": True}
        return KernelPart(self.py_func, {}, options)

    @property
    def _numba_type_(self) -> Any:
        """Give other kernels the part instead of the whole."""
        return self._part._numba_type_

    def add_overload(self, result: Any) -> None:
        super().add_overload(result)
        # Parts are not loaded by themselves, so what their code refers to is entered here.
        for environment in result._find_referenced_environments():
            result.codegen.set_env(environment.env_name, environment)


class KernelPart(CPUDispatcher):  # type: ignore[misc]
    """A kernel as other kernels see it; Python cannot call it."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        # Without this a kernel is compiled once for every constant that it is given; LLVM finds out by itself
        # where a constant helps.
        return super().get_call_template(tuple(map(numba.types.unliteral, args)), kws)


class _Count(numba.core.event.Listener):  # type: ignore[misc]
    """Count the kernels that were compiled, each once."""

    def __init__(self, on_kernel: Callable[[int, int], None]) -> None:
        self._on_kernel = on_kernel
        self._compiled: set[Any] = set()

    def on_start(self, event: Any) -> None:
        """Wait for the end."""

    def on_end(self, event: Any) -> None:
        dispatcher = event.data["dispatcher"]
        if isinstance(dispatcher, Kernel | KernelPart) and dispatcher.py_func not in self._compiled:
            self._compiled.add(dispatcher.py_func)
            self._on_kernel(len(self._compiled), Kernel.n_known)


@contextlib.contextmanager
def compilation_watched(on_kernel: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``on_kernel(done, known)`` after each kernel that is compiled meanwhile, not for those loaded.

    ``known`` counts the kernels of all modules imported by then; some of them may have no use.
    """
    with numba.core.event.install_listener("numba:compile", _Count(on_kernel)):
        yield
