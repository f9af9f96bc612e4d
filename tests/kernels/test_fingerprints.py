"""Another value makes another kernel; the same values make the same one."""

from __future__ import annotations

import enum
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

import ps2stream
from ps2stream.kernels import fingerprints
from ps2stream.kernels.compiling import Kernel
from ps2stream.kernels.fingerprints import NoFingerprintError, fingerprint

VALUE: Any = None


class Pair(NamedTuple):
    first: int
    second: int


class Swapped(NamedTuple):
    second: int
    first: int


Swapped.__qualname__ = Pair.__qualname__


class Colour(enum.IntEnum):
    RED = 1


class OtherColour(enum.IntEnum):
    RED = 2


OtherColour.__qualname__ = Colour.__qualname__


def _uses_value() -> Any:
    """Return it."""
    return VALUE


def _calls_it() -> Any:
    return _uses_value() + 1


def _of(function: Any, signature: Any = ()) -> str:
    fingerprints._function.cache_clear()
    return fingerprint(function, signature, "some processor")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        (0.1, 0.1000001),
        (1, np.int64(1)),
        (np.uint64(1), np.uint64(2)),
        (np.arange(3), np.arange(3).astype(np.int32)),
        (np.arange(3), np.array([0, 2, 1])),
        (np.arange(4), np.arange(4).reshape(2, 2)),
        ((1, 2), (1, 3)),
        ((1, 2), Pair(1, 2)),
        (Pair, Swapped),
        (Colour, OtherColour),
        (Colour.RED, OtherColour.RED),
        (np.dtype("<i4"), np.dtype("<i8")),
        (np.int32, np.int64),
        (min, max),
        (lambda: 1, lambda: 2),
    ],
)
def test_another_value_of_a_global_is_another_kernel(
    monkeypatch: pytest.MonkeyPatch, one: object, other: object
) -> None:
    found = []
    for value in (one, other, one):
        monkeypatch.setitem(globals(), "VALUE", value)
        found.append((_of(_uses_value), _of(_calls_it)))
    assert found[0] == found[2]
    assert found[0][0] != found[1][0]
    assert found[0][1] != found[1][1]


def test_what_has_no_fingerprint_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (object(), SimpleNamespace(limit=3), [1, 2]):
        monkeypatch.setitem(globals(), "VALUE", value)
        with pytest.raises(NoFingerprintError, match="no fingerprint"):
            _of(_calls_it)


def test_defaults_and_closures_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(bound: int) -> Any:
        def function(value: int = bound) -> int:
            return value

        def other() -> int:
            return bound

        return function, other

    one, other, again = closed(1), closed(2), closed(1)
    for which in range(2):
        assert _of(one[which]) == _of(again[which]) != _of(other[which])


def test_the_order_of_fields_counts_where_numba_names_two_types_alike() -> None:
    types = [numba.types.NamedUniTuple(numba.types.int64, 2, kind) for kind in (Pair, Swapped)]
    assert _of(_uses_value, (types[0],)) != _of(_uses_value, (types[1],))
    nested = [numba.types.Tuple((kind, numba.types.int64)) for kind in types]
    assert _of(_uses_value, (nested[0],)) != _of(_uses_value, (nested[1],))


def _kernels() -> Iterator[Kernel]:
    for module in pkgutil.walk_packages(ps2stream.__path__, "ps2stream."):
        if not module.name.endswith(("__main__", ".spark.daemon")):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Kernel):
                    yield value


def test_every_kernel_of_the_package_has_a_fingerprint() -> None:
    found = {kernel.py_func: _of(kernel.py_func) for kernel in _kernels()}
    assert len(found) > 150
    assert len(set(found.values())) > 0.95 * len(found)  # few are written alike


_PRINT = """
from ps2stream.kernels.fingerprints import fingerprint
from ps2stream.text import lexer, normal_form
for kernel in (normal_form.normalize, lexer.lex, lexer.spell_out):
    print(fingerprint(kernel.py_func, (), ""))
"""


def test_a_limit_in_a_file_without_kernels_changes_those_that_use_it(tmp_path: Path) -> None:
    def printed() -> list[str]:
        # Python takes its own cache for current if length and second of the source are the same.
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", _PRINT]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout.split()

    source = Path(ps2stream.__file__).parent
    shutil.copytree(source, tmp_path / "ps2stream", ignore=shutil.ignore_patterns("__pycache__"))
    limits = tmp_path / "ps2stream" / "model" / "expressions.py"
    text = limits.read_text()
    before = printed()
    limits.write_text("# A comment.\n" + text.replace("MAX_DEPTH = 100", "MAX_DEPTH = 50 + 50"))
    assert printed() == before
    for limit, expected in (
        ("MAX_CLAUSES = 64", [False, True, True]),
        ("MAX_DEPTH = 100", [True, False, True]),
    ):
        assert limit in text
        limits.write_text(text.replace(limit, limit.replace("= ", "= 1 + ")))
        assert [one == other for one, other in zip(before, printed(), strict=True)] == expected
