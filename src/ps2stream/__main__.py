"""The start of a process: ``ps2stream``, and ``python -m ps2stream``.

Signals count from here on: until the command line is imported, and has handlers of its own, one ends the
process with a line and the documented code, where Python would show a traceback of its import system.
"""

from __future__ import annotations

import os
import signal
import sys

_ENDINGS = {signal.SIGINT: b"interrupted", signal.SIGTERM: b"terminated"}


def main() -> int:
    """Run the command that was typed; return its exit code."""
    for number in _ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as for what a script starts in the background
            signal.signal(number, _leave)
    from ps2stream.cli.main import main as run

    return run()


def _leave(number: int, frame: object) -> None:
    os.write(2, b"ps2stream: " + _ENDINGS[signal.Signals(number)] + b"\n")
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
