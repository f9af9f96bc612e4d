"""A process ends well whenever a signal comes, before the command line is there, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

#: Send a signal to oneself while the command line is being imported.
_START = """
import os, signal, sys

class Signalling:
    def find_spec(self, name, path=None, target=None):
        if name == "ps2stream.cli.main":
            os.kill(os.getpid(), {number})
        return None

sys.meta_path.insert(0, Signalling())
sys.argv[1:] = ["--version"]
from ps2stream.__main__ import main
sys.exit(main())
"""


def _start(number: int, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _START.format(number=number)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("number", "code", "words"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_during_the_imports_ends_it_with_a_line(number: int, code: int, words: str) -> None:
    done = _start(number)
    assert (done.returncode, done.stderr, done.stdout) == (code, f"ps2stream: {words}\n", "")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_signal_that_is_ignored_stays_ignored() -> None:
    done = _start(signal.SIGINT, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert done.returncode == 0
    assert done.stdout.startswith("ps2stream")
