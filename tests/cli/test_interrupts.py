"""Signals that reach a command in a moment of its own; each test is a small process."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import NamedTuple

import pytest

# Says "ready" and waits for what the test does to it.
_ABRUPT = """
import os, time
from ps2stream.cli.interrupts import abrupt_interrupts
with abrupt_interrupts() as interrupts:
    # Not by print: the signal may come while the print below is not done yet, which may not be entered again.
    with interrupts.tidied_by(lambda: os.write(1, b"first in\\n")):
        with interrupts.tidied_by(lambda: 1 / 0), interrupts.tidied_by(lambda: os.write(1, b"last in\\n")):
            print("ready", flush=True)
            time.sleep(300)
"""
_HELD = """
import time
from ps2stream.cli.interrupts import abrupt_interrupts
with abrupt_interrupts() as interrupts:
    with interrupts.held():
        print("ready", flush=True)
        while not interrupts:
            time.sleep(0.01)
    print("asked", interrupts.exit_code, flush=True)
    time.sleep(300)
"""
_IN_A_FINALISER = """
import time
from ps2stream.cli.interrupts import abrupt_interrupts
class Slow:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(300)
with abrupt_interrupts() as interrupts:
    Slow()
"""
_RAISED = """
import sys, time
from ps2stream.cli import main
def wait(words):
    print("ready", flush=True)
    time.sleep(300)
main._run = wait
sys.exit(main.main([]))
"""
_IGNORED = """
import signal, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
from ps2stream.cli.interrupts import abrupt_interrupts, held_interrupts
for handled in (abrupt_interrupts, held_interrupts):
    with handled():
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
print("ready", flush=True)
"""


class Ended(NamedTuple):
    code: int
    out: list[str]
    err: str


def signalled(code: str, *numbers: signal.Signals) -> Ended:
    """Run code, send a signal after each line that it says, and return how it ended."""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = []
        for number in numbers:
            said.append(process.stdout.readline().strip())
            process.send_signal(number)
        out, err = process.communicate(timeout=240)
    return Ended(process.returncode, [*said, *out.splitlines()], err)


BOTH = pytest.mark.parametrize(
    ("number", "code", "words"),
    [(signal.SIGINT, 130, "ps2stream: interrupted\n"), (signal.SIGTERM, 143, "ps2stream: terminated\n")],
)


@BOTH
def test_a_command_ends_at_once_with_one_line_and_tidies_up(
    number: signal.Signals, code: int, words: str
) -> None:
    assert signalled(_ABRUPT, number) == Ended(code, ["ready", "last in", "first in"], words)


@BOTH
def test_a_held_signal_is_a_flag_and_the_second_one_ends_it(
    number: signal.Signals, code: int, words: str
) -> None:
    assert signalled(_HELD, number, signal.SIGTERM) == Ended(code, ["ready", f"asked {code}"], words)


@BOTH
def test_a_signal_is_not_lost_where_python_swallows_exceptions(
    number: signal.Signals, code: int, words: str
) -> None:
    assert signalled(_IN_A_FINALISER, number) == Ended(code, ["ready"], words)


@BOTH
def test_any_command_ends_with_one_line(number: signal.Signals, code: int, words: str) -> None:
    assert signalled(_RAISED, number) == Ended(code, ["ready"], words)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    assert signalled(_IGNORED) == Ended(0, ["ready"], "")
