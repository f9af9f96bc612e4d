"""Compiled kernels are loaded where they are the same, and never cost more than time where the disk fails."""

from __future__ import annotations

import errno
import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ps2stream.kernels import cache, kernel
from ps2stream.kernels.cache import cache_directory

# Two files, because numba itself notices a change of the file that holds the kernel.
LIMITS = "LIMIT = 3\n"
CALLED = """
from ps2stream.kernels import kernel

@kernel
def LIMIT():
    return RESULT
"""
USES = """
from limits import LIMIT
from ps2stream.kernels import kernel

@kernel
def at_most(value):
    return value if value < LIMIT else LIMIT

@kernel
def sum_of(values):
    total = 0
    for value in values:
        total += at_most(value)
    return total
"""
RUN = """
import numpy as np
from uses import sum_of
from ps2stream.kernels import compilation_watched, one_compiler

compiled = []
with compilation_watched(lambda done, known: compiled.append(done)), one_compiler():
    total = sum_of(np.arange(10))
print(total, len(compiled))
"""
#: 0 + 1 + 2 + 7 * 3, and two kernels compiled; and when they are loaded.
COMPILED, LOADED = "24 2\n", "24 0\n"
SOURCES = str(Path(cache.__file__).parents[2])


class Program:
    """A small program with kernels, and a cache of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cache = directory / "cache"
        self.write("limits.py", LIMITS)
        self.write("uses.py", USES)

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def start(self, before: Callable[[], None] | None = None, **environment: str) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        paths = {"PYTHONPATH": f"{self.directory}:{SOURCES}", "PS2STREAM_CACHE_DIR": str(self.cache)}
        return subprocess.Popen(
            [sys.executable, "-c", RUN],
            # Python takes its own cache for current if length and second of the source are the same.
            env=kept | paths | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )

    def run(self, before: Callable[[], None] | None = None, **environment: str) -> str:
        """Return what it prints; nothing may go to stderr."""
        output, errors = self.start(before, **environment).communicate()
        assert errors == ""
        return output

    def files(self) -> list[Path]:
        return [path for path in (self.cache / "kernels").iterdir() if path.name != "lock"]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cache of a program that ran; where it ran does not matter."""
    first = Program(tmp_path_factory.mktemp("first"))
    assert first.run() == COMPILED
    return first.cache


@pytest.fixture
def next_program(program: Program, compiled: Path) -> Program:
    shutil.copytree(compiled, program.cache)
    return program


def test_the_next_process_loads_what_the_first_compiled(next_program: Program) -> None:
    assert next_program.run() == LOADED


def test_a_constant_of_another_file_takes_effect_at_once(next_program: Program) -> None:
    next_program.write("limits.py", LIMITS.replace("3", "2"))
    assert next_program.run() == "17 2\n"
    next_program.write("limits.py", LIMITS)
    assert next_program.run() == LOADED


def test_a_kernel_of_another_file_takes_effect_at_once(program: Program) -> None:
    program.write("limits.py", CALLED.replace("RESULT", "1"))
    program.write("uses.py", USES.replace("else LIMIT", "else LIMIT()").replace("< LIMIT", "< LIMIT()"))
    assert program.run() == "9 3\n"
    program.write("limits.py", CALLED.replace("RESULT", "2"))
    assert program.run() == "17 3\n"


def test_a_kernel_that_calls_itself_is_compiled_by_every_process(program: Program) -> None:
    itself = "if value > LIMIT:\n        return at_most(value - 1)\n    return value"
    program.write("uses.py", USES.replace("return value if value < LIMIT else LIMIT", itself))
    assert program.run() == program.run() == COMPILED
    assert program.files() == []


def test_words_that_change_no_code_compile_nothing(next_program: Program) -> None:
    next_program.write("limits.py", "# At most as many.\n" + LIMITS + "OTHER = 5\n")
    next_program.write("uses.py", USES.replace("@kernel\ndef sum_of", "# All.\n\n@kernel\ndef sum_of"))
    assert next_program.run() == LOADED


def test_a_damaged_file_is_compiled_again(next_program: Program) -> None:
    (path,) = next_program.files()
    content = path.read_bytes()
    half = len(content) // 2
    changed = content[:half] + b"\x00\xff" + content[half + 2 :]
    for damaged in (b"", content[:half], b"\x80\x05garbage" * 100, changed):
        path.write_bytes(damaged)
        assert next_program.run() == COMPILED
    assert next_program.run() == LOADED


def test_without_a_writable_directory_every_process_compiles(program: Program) -> None:
    program.cache.write_text("a file is in the way")
    assert program.run() == COMPILED


def test_a_file_that_cannot_be_written_to_its_end_is_not_kept(program: Program) -> None:
    """The kernel allows files of one kilobyte: writing stops in the middle, as on a full disk."""
    assert program.run(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))) == COMPILED
    assert program.files() == []
    assert program.run() == COMPILED


def test_a_full_disk_costs_nothing_but_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)

    @kernel
    def double(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
        return 2 * len(values)

    assert double(np.arange(4)) == 8
    assert list(tmp_path.iterdir()) == []


def test_two_processes_that_start_together_compile_once(program: Program) -> None:
    processes = [program.start() for _ in range(2)]
    outputs = [process.communicate() for process in processes]
    assert sorted(outputs) == [(LOADED, ""), (COMPILED, "")]


def test_the_directory_that_numba_is_given_is_used_as_it_is(program: Program, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    given.chmod(0o777)
    assert program.run(NUMBA_CACHE_DIR=str(given)) == COMPILED
    assert program.run(NUMBA_CACHE_DIR=str(given)) == LOADED
    assert not program.cache.exists()


def shipped_to(host: Path, kernels: Path) -> Program:
    """Give another host a package that brings its kernels along, and the same program."""
    package = host / "packages" / "ps2stream"
    shutil.copytree(Path(SOURCES) / "ps2stream", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(kernels, package / "kernels" / "compiled")
    return Program(host)


def test_kernels_that_came_with_the_package_are_loaded_from_there(compiled: Path, tmp_path: Path) -> None:
    other = shipped_to(tmp_path / "other", compiled / "kernels")
    paths = f"{other.directory}:{other.directory / 'packages'}"
    assert other.run(PYTHONPATH=paths) == LOADED
    assert other.files() == []
    other.write("limits.py", LIMITS.replace("3", "2"))
    assert other.run(PYTHONPATH=paths) == "17 2\n"
    assert len(other.files()) == 1


def test_kernels_of_another_kind_of_processor_are_passed_over(program: Program, tmp_path: Path) -> None:
    program.run(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    other = shipped_to(tmp_path / "other", program.cache / "kernels")
    assert other.run(PYTHONPATH=f"{other.directory}:{other.directory / 'packages'}") == COMPILED


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("NUMBA_CACHE_DIR", "PS2STREAM_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _directory() -> Path | None:
    return cache_directory.__wrapped__()


@pytest.mark.parametrize("caches", [None, "", "relative/caches"])
def test_without_an_absolute_xdg_directory_the_home_has_the_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch, caches: str | None
) -> None:
    if caches is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", caches)
    assert _directory() == home / ".cache" / "ps2stream" / "kernels"


def test_the_xdg_directory_and_ours_choose_another_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "caches"))
    assert _directory() == home / "caches" / "ps2stream" / "kernels"
    monkeypatch.setenv("PS2STREAM_CACHE_DIR", str(home / "ours"))
    assert _directory() == home / "ours" / "kernels"


def test_a_new_directory_is_for_its_user_only(home: Path) -> None:
    previous = os.umask(0)
    try:
        directory = _directory()
    finally:
        os.umask(previous)
    assert directory is not None
    assert [path.stat().st_mode & 0o777 for path in (directory, directory.parent)] == [0o700, 0o700]


@pytest.mark.parametrize("which", ["kernels", "."])
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_directory_that_others_can_write_to_is_refused(
    home: Path, caplog: pytest.LogCaptureFixture, which: str, mode: int
) -> None:
    shared = home / ".cache" / "ps2stream" / which
    (home / ".cache" / "ps2stream" / "kernels").mkdir(parents=True)
    shared.chmod(mode)
    with caplog.at_level(logging.WARNING):
        assert _directory() is None
    assert [record.getMessage() for record in caplog.records] == [
        f"compiled kernels are not kept: others can write to {shared}"
    ]


def test_a_directory_of_somebody_else_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = _directory()
    assert directory is not None
    if os.getuid() == 0:
        os.chown(directory, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert _directory() is None


def test_a_user_without_a_home_has_no_cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    assert _directory() is None
