"""What decides what a kernel compiles to, as one hash.

Kernels take the values of globals as constants when they are compiled. So the hash is of values, not of
files: wherever a constant comes from, another value makes another kernel, and an edit that changes no value
(a comment, a docstring, a function beside it) changes nothing.
"""

from __future__ import annotations

import builtins
import enum
import functools
import hashlib
import sys
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np

#: Their contents go by their versions.
_VERSIONED = {"builtins", "math", "numpy", "operator"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_config: Any = numba.config


class NoFingerprintError(TypeError):
    """A kernel uses something of which it cannot be told whether it is still the same."""


def fingerprint(function: FunctionType, signature: Any, target: Any) -> str:
    """Return a hash of a kernel for some types of arguments on a kind of processor."""
    types = tuple(_type(kind) for kind in signature)
    return hashlib.sha256(repr((_compiler(), _function(function), types, target)).encode()).hexdigest()


@functools.cache
def _compiler() -> object:
    """Describe who compiles, this package included."""
    versions = sys.version_info[:3], numba.__version__, llvmlite.__version__, np.__version__
    settings = str(_config.OPT), _config.BOUNDSCHECK, _config.DEBUGINFO_DEFAULT
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return versions, settings, hashlib.sha256(b"".join(sources)).hexdigest()


@functools.cache
def _function(function: FunctionType) -> str:
    """Describe a function and all that it uses; as a hash, because others use it in their turn."""
    code = function.__code__
    cells = [_value(cell.cell_contents) for cell in function.__closure__ or ()]
    constants = [value for value in code.co_consts if value is not function.__doc__]
    used = (
        _code(code, constants),
        _used(code, function),
        cells,
        _value(function.__defaults__),
    )
    return hashlib.sha256(repr(used).encode()).hexdigest()


def _code(code: CodeType, constants: Any) -> object:
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount
    return code.co_code, names, list(map(_value, constants))


def _used(code: CodeType, function: FunctionType) -> list[object]:
    """Describe the globals that code may use; names of attributes that are also globals are taken along."""
    names = _names(code)
    found = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    unknown = [name for name in names if name not in function.__globals__ and hasattr(builtins, name)]
    return [unknown, *((name, _global(value, names)) for name, value in found)]


def _names(code: CodeType) -> list[str]:
    inner = [name for value in code.co_consts if isinstance(value, CodeType) for name in _names(value)]
    return sorted({*code.co_names, *inner})


def _global(value: Any, names: list[str]) -> object:
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _VERSIONED:
        # Whatever of the module the code may mean.
        return [(name, _value(getattr(value, name))) for name in names if hasattr(value, name)]
    return _value(value)


def _value(value: Any) -> object:
    """Describe a value so that another one has another description."""
    function = getattr(value, "py_func", value)  # of a kernel
    if isinstance(function, FunctionType):
        return _function(function)
    if type(value) in _PLAIN:
        return type(value).__name__, repr(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()
    if isinstance(value, tuple):
        return type(value).__qualname__, getattr(value, "_fields", None), list(map(_value, value))
    if isinstance(value, frozenset):
        return sorted(map(repr, map(_value, value)))
    if isinstance(value, CodeType):
        return _code(value, value.co_consts)
    return _named(value)


def _named(value: Any) -> object:
    """Describe what a name and a version or its fields tell apart from all others."""
    if isinstance(value, enum.Enum):
        return type(value).__qualname__, value.name, _value(value.value)
    if isinstance(value, np.dtype):
        return value.str, str(value)
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _VERSIONED:
        return value.__name__
    if isinstance(value, BuiltinFunctionType | np.ufunc):
        return value.__name__
    if isinstance(value, type):
        return _class(value)
    raise NoFingerprintError(f"a kernel uses {value!r}, which has no fingerprint")


def _class(kind: type) -> object:
    if kind.__module__.partition(".")[0] in _VERSIONED:
        return kind.__module__, kind.__qualname__
    if hasattr(kind, "_fields"):
        return kind.__qualname__, kind._fields
    if issubclass(kind, enum.Enum):
        return kind.__qualname__, [_value(member) for member in kind]
    raise NoFingerprintError(f"a kernel uses {kind!r}, which has no fingerprint")


def _type(kind: Any) -> object:
    """Describe the type of an argument; numba's name of a NamedTuple leaves out the names of its fields."""
    if isinstance(kind, numba.types.BaseTuple):
        return repr(kind), getattr(kind, "fields", None), [_type(member) for member in kind]
    return repr(kind)
