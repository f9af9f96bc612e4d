"""Show a running demo: live on a terminal, in plain lines everywhere else."""

from __future__ import annotations

import os
from typing import Protocol, TextIO

from ps2stream.cli.render.printable import clock, milliseconds, printable
from ps2stream.demo.snapshot import Snapshot

_LINE_EVERY_S = 5.0
_WIDTH = 80


class View(Protocol):
    """Where snapshots are shown; ``close`` leaves the stream as it was, may be called twice."""

    def show(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...


class PlainView:
    """Write a line every few seconds, at each new phase, for the first match and for each adjustment.

    There is no escape code in it.
    """

    def __init__(self, stream: TextIO, every_s: float = _LINE_EVERY_S) -> None:
        self._stream = stream
        self._every_s = every_s
        self._phase = ""
        self._next_s = 0.0
        self._n_adjustments = 0
        self._busy_around = ""
        self._has_matches = False

    def show(self, snapshot: Snapshot) -> None:
        self._write_news(snapshot)
        is_first_match = snapshot.n_matches > 0 and not self._has_matches
        if snapshot.phase == self._phase and snapshot.elapsed_s < self._next_s and not is_first_match:
            return
        self._has_matches = snapshot.n_matches > 0
        self._phase = snapshot.phase
        self._next_s = snapshot.elapsed_s + self._every_s
        self._write(f"{clock(snapshot.elapsed_s):>5}  {snapshot.phase}")
        if snapshot.n_events:
            self._write(
                f"       {snapshot.n_events:,} events, {snapshot.n_matches:,} matches, "
                f"{snapshot.n_subscriptions:,} subscriptions, {snapshot.n_rejected:,} rejected"
            )
            p50, p99 = milliseconds(snapshot.latency_p50_ms), milliseconds(snapshot.latency_p99_ms)
            self._write(
                f"       {snapshot.events_per_s:,.0f} events/s, {snapshot.matches_per_s:,.0f} matches/s, "
                f"latency {p50} p50, {p99} p99"
            )
        for sample in snapshot.samples[-1:]:
            self._write(
                f"       {sample.expression} ({sample.subscription_id}) at {sample.place}: {sample.text}"
            )

    def close(self) -> None:
        self._stream.flush()

    def _write_news(self, snapshot: Snapshot) -> None:
        if snapshot.busy_around != self._busy_around:
            self._busy_around = snapshot.busy_around
            self._write(f"{clock(snapshot.elapsed_s):>5}  busy around {snapshot.busy_around}")
        for line in snapshot.adjustments[self._n_adjustments :]:
            self._write(f"{clock(line.elapsed_s):>5}  {line.words}")
        self._n_adjustments = len(snapshot.adjustments)

    def _write(self, line: str) -> None:
        indent = len(line) - len(line.lstrip())
        safe = " " * indent + printable(line)
        if len(safe) > _WIDTH:
            safe = safe[: _WIDTH - 3] + "..."
        encoding = self._stream.encoding or "utf-8"
        # A log may be opened in ASCII; a question mark for an emoji is better than the end of the demo.
        self._stream.write(safe.encode(encoding, "replace").decode(encoding) + "\n")
        self._stream.flush()


def open_view(stream: TextIO) -> View:
    """Choose the view that the stream can carry."""
    blocks = (stream.encoding or "").lower().replace("-", "").startswith("utf")
    if not stream.isatty() or not blocks or os.environ.get("TERM", "") in ("", "dumb"):
        return PlainView(stream)
    # Late: plain lines do without rich.
    from ps2stream.demo.live_view import LiveView

    return LiveView(stream)
