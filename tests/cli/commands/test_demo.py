from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("engine", ["inline", "microbatch"])
def test_the_demo_streams_and_ends_with_a_summary(engine: str) -> None:
    command = [sys.executable, "-m", "ps2stream", "demo", "--seconds", "3", "--subscriptions", "2000"]
    done = subprocess.run(
        [*command, "--rate", "1000", "--workers", "2", "--engine", engine],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "streaming" in done.stdout
    assert "The demo has ended." in done.stdout
    assert "2,000 live at the end" in done.stdout
    assert "\x1b[" not in done.stdout, "plain lines when not on a terminal"
    assert "Traceback" not in done.stderr
