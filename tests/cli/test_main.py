from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import Any

import pytest

from ps2stream.cli import main as main_module
from ps2stream.cli.interrupts import Terminated
from ps2stream.cli.main import COMMANDS, main
from ps2stream.deployment.home import Home
from ps2stream.errors import PS2StreamError
from waiting import HANG_S

MINE = (
    "replay",
    "demo",
    "partition",
    "run",
    "publish",
    "subscribe",
    "unsubscribe",
    "subscriptions",
    "matches",
    "status",
    "adjustments",
    "repartition",
    "explain",
)


def _process(*words: str, code: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(["-c", code] if code else ["-m", "ps2stream"]), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)


def test_help_names_every_command_and_exit_code(run: Any) -> None:
    ran = run("--help")
    assert ran.code == 0
    words = " ".join(ran.out.split())
    for name, summary in COMMANDS.items():
        assert f"{name} {summary}" in words
    for code in ("0", "1", "2", "3", "130", "141", "143"):
        assert f"\n  {code} " in ran.out


@pytest.mark.parametrize("command", MINE)
def test_help_of_a_command_teaches_by_examples(run: Any, command: str) -> None:
    ran = run(command, "--help")
    assert ran.code == 0
    assert f"usage: ps2stream {command}" in ran.out
    assert ran.out.partition("examples:")[2].count(f"ps2stream {command}") >= 2


def test_help_imports_nothing_heavy_and_little_at_all() -> None:
    heavy = "{'matplotlib', 'numba', 'numpy', 'pyarrow', 'pyspark', 'rich', 'scipy'}"
    for words in (["--help"], *([name, "--help"] for name in MINE)):
        code = (
            "import sys; from ps2stream.cli.main import main; main(sys.argv[1:]); "
            f"sys.exit(' '.join({heavy} & set(sys.modules)) or ('many' if len(sys.modules) > 200 else 0))"
        )
        done = _process(*words, code=code)
        assert done.returncode == 0, (words, done.stderr)


def test_version_is_shown(run: Any) -> None:
    ran = run("--version")
    assert ran.code == 0
    assert ran.out.startswith("ps2stream")


@pytest.mark.parametrize("words", [[], ["nonsense"], ["publish", "--nonsense"], ["--nonsense"]])
def test_wrong_usage_is_2(run: Any, words: list[str]) -> None:
    ran = run(*words)
    assert ran.code == 2
    assert "usage: ps2stream" in ran.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (PS2StreamError("the disk is full\x1b[31m"), 3, "ps2stream: the disk is full [31m\n"),
        (FileNotFoundError(2, "No such file", "events"), 3, "ps2stream: events: No such file\n"),
        (KeyboardInterrupt(), 130, "ps2stream: interrupted\n"),
        (Terminated(), 143, "ps2stream: terminated\n"),
    ],
)
def test_errors_become_exit_codes_and_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    message: str,
) -> None:
    def fail(words: list[str]) -> int:
        raise error

    monkeypatch.setattr(main_module, "_run", fail)
    assert main(["publish"]) == code
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    ("closed", "words"),
    [
        (">&-", ["explain", "--text", "x", "--at", "0,0", "--expression", "x", "--region", "0,0,1,1"]),
        ("<&-", ["publish"]),
        ("2>&-", ["publish", "--file", "/dev/null"]),
    ],
)
def test_a_stream_that_is_closed_is_like_an_empty_one(home: Home, closed: str, words: list[str]) -> None:
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "ps2stream", *words]
    done = subprocess.run(
        shell, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_warnings_of_the_library_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    logging.getLogger("ps2stream.journal").warning("packet %d\nis damaged", 7)
    logging.getLogger("py4j.clientserver").error("a traceback of no use")
    assert capsys.readouterr().err == "ps2stream: packet 7 is damaged\n"


def test_a_reader_that_has_gone_is_141_and_quiet() -> None:
    read, write = os.pipe()
    os.close(read)
    words = ["explain", "--text", "x", "--at", "0,0", "--expression", "x", "--region", "0,0,1,1"]
    command = [sys.executable, "-m", "ps2stream", *words]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=HANG_S, check=False)
    os.close(write)
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.parametrize(
    "words",
    [
        ["matches", "--since", "9" * 10_000],
        ["matches", "--limit", "9" * 10_000],
        ["subscribe", "a", "fire", "--around", "0,0", "--km", "x" * 10_000],
        ["run", "--partitioner", "x" * 10_000],
        ["x" * 10_000],
    ],
)
def test_usage_errors_do_not_repeat_what_nobody_would_read(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "error: " in line
    assert len(line) < 1_000
