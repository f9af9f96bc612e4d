"""A home, and the command line as a function."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ps2stream.cli.main import main
from ps2stream.deployment.home import Home


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    def json(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Name a home that does not exist yet; commands use it unless told otherwise."""
    for name in ("PS2STREAM_KAFKA", "PS2STREAM_TOPICS", "PS2STREAM_STORE", "PS2STREAM_MASTER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PS2STREAM_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home")


@pytest.fixture
def run(home: Home, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def run(*words: str) -> Ran:
        capfd.readouterr()
        code = main(words)
        captured = capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., str]:
    """Write lines, of JSON where they are no strings yet, to a file; return its name."""

    def write(*records: object, name: str = "input.jsonl") -> str:
        path = tmp_path / name
        texts = [record if isinstance(record, str) else json.dumps(record) for record in records]
        path.write_text("\n".join(texts) + "\n", encoding="utf-8", errors="surrogateescape")
        return str(path)

    return write
