"""The live view: one screen that is redrawn in place."""

from __future__ import annotations

import re
from collections import deque
from typing import NamedTuple, TextIO

from rich.box import ROUNDED
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ps2stream.cli.render.charts import bar, sparkline
from ps2stream.cli.render.printable import clock, milliseconds, printable, share
from ps2stream.demo.snapshot import AdjustmentLine, SampleMatch, Snapshot

_N_RATES = 60
_WIDEST = 100
# What a worker's line holds beside its bar.
_WORKER_FIGURES_WIDTH = 46
_MOST_WORKERS = 8
_MOST_SAMPLES = 5
_MOST_ADJUSTMENTS = 4
# Lines of the screen that neither workers nor samples nor adjustments take, and those of a frame.
_FIXED_LINES = 14
_FRAME_LINES = 2
_STREAMING = "streaming"
_OPERATORS = {"AND", "OR", "NOT"}


class LiveView:
    """Redraw snapshots in place; the screen is given back on close."""

    def __init__(self, stream: TextIO | None = None, console: Console | None = None) -> None:
        self._console = console or Console(file=stream, highlight=False)
        self._rates: deque[float] = deque(maxlen=_N_RATES)
        # Drawn when a snapshot comes and only then: a second clock would redraw old figures, and flicker.
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def show(self, snapshot: Snapshot) -> None:
        if snapshot.phase == _STREAMING:
            self._rates.append(snapshot.events_per_s)
        size = self._console.size
        screen = render(snapshot, tuple(self._rates), min(size.width, _WIDEST), size.height)
        self._live.update(screen, refresh=True)

    def close(self) -> None:
        self._live.stop()


def render(snapshot: Snapshot, rates: tuple[float, ...], width: int, height: int) -> RenderableType:
    """Draw one screen of at most ``height`` lines, as far as the fixed ones allow it."""
    lines = _Lines.of(snapshot, height)
    sections: list[RenderableType] = [_figures(snapshot), _throughput(snapshot, rates)]
    if snapshot.worker_busy:
        bar_width = max(8, width - _WORKER_FIGURES_WIDTH)
        sections.append(
            _panel("workers, beside the busiest", _workers(snapshot, lines.n_workers, bar_width), width)
        )
    if snapshot.adjustments or snapshot.busy_around:
        newest_lines = snapshot.adjustments[::-1][: lines.n_adjustments]
        body = _adjustments(newest_lines, width - 4)
        sections.append(_panel("load adjustment", body, width, _busy_around(snapshot)))
    if snapshot.samples:
        # The newest on top: what moves is where the eye already is.
        newest = snapshot.samples[::-1][: lines.n_samples]
        sections.append(_panel("matches", _samples(newest, width - 4), width))
    head = _panel(_title(snapshot), Group(*sections[:2]), width, _time(snapshot))
    return Group(head, *sections[2:])


class _Lines(NamedTuple):
    """How many lines of each kind the screen can hold; there is always one of each."""

    n_workers: int
    n_adjustments: int
    n_samples: int

    @classmethod
    def of(cls, snapshot: Snapshot, height: int) -> _Lines:
        n_free = height - _FIXED_LINES
        n_workers, n_adjustments = min(len(snapshot.worker_busy), _MOST_WORKERS), 0
        if snapshot.adjustments or snapshot.busy_around:
            n_free -= _FRAME_LINES
            # Two lines of a sample have to be left, and two that say what was done.
            n_workers = max(1, min(n_workers, n_free - 4))
            n_adjustments = min(len(snapshot.adjustments), _MOST_ADJUSTMENTS, n_free - n_workers - 2)
        n_samples = (n_free - n_workers - n_adjustments) // 2
        return cls(n_workers, max(1, n_adjustments), max(1, min(_MOST_SAMPLES, n_samples)))


def _panel(title: str | Text, body: RenderableType, width: int, subtitle: Text | None = None) -> Panel:
    return Panel(
        body,
        title=title,
        subtitle=subtitle,
        title_align="left",
        subtitle_align="right",
        box=ROUNDED,
        border_style="grey50",
        width=width,
    )


def _title(snapshot: Snapshot) -> Text:
    return Text.assemble(("PS2Stream", "bold cyan"), "  ", (printable(snapshot.phase), "bold white"))


def _time(snapshot: Snapshot) -> Text:
    left = "Ctrl-C ends it" if snapshot.remaining_s is None else f"{clock(snapshot.remaining_s)} left"
    return Text(f"{clock(snapshot.elapsed_s)} · {left}", "grey70")


def _figures(snapshot: Snapshot) -> Table:
    grid = Table.grid(expand=True, padding=(0, 1))
    for _ in range(2):
        grid.add_column(style="grey70")
        grid.add_column(justify="right", style="bold")
    discarded = f"{snapshot.n_discarded:,} ({share(snapshot.n_discarded, snapshot.n_publications)})"
    rows = (
        ("events", f"{snapshot.n_events:,}", "subscriptions", f"{snapshot.n_subscriptions:,}"),
        ("publications", f"{snapshot.n_publications:,}", "discarded early", discarded),
        ("matches", f"{snapshot.n_matches:,}", "matches/s", f"{snapshot.matches_per_s:,.0f}"),
        (
            "latency p50",
            milliseconds(snapshot.latency_p50_ms),
            "latency p99",
            milliseconds(snapshot.latency_p99_ms),
        ),
    )
    for left, left_value, right, right_value in rows:
        grid.add_row(left, left_value, Text(f"    {right}"), right_value)
    if snapshot.n_rejected:
        grid.add_row(Text("rejected", "yellow"), Text(f"{snapshot.n_rejected:,}", "bold yellow"), "", "")
    return grid


def _throughput(snapshot: Snapshot, rates: tuple[float, ...]) -> Table:
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(no_wrap=True, overflow="crop")
    grid.add_column(justify="right", no_wrap=True)
    line = Text(sparkline(rates).ljust(_N_RATES), "cyan")
    grid.add_row(line, Text(f"{snapshot.events_per_s:,.0f} events/s", "bold cyan"))
    return grid


def _workers(snapshot: Snapshot, n_shown: int, bar_width: int) -> Table:
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(justify="right", style="grey70")
    grid.add_column(width=bar_width, no_wrap=True)
    grid.add_column(justify="right", style="bold")
    grid.add_column(justify="right", style="grey70")
    subscriptions = snapshot.worker_subscriptions
    # Beside the busiest: at a moderate rate all are busy for a few per cent, and it is balance that tells.
    most = max(snapshot.worker_busy)
    for worker, busy in enumerate(snapshot.worker_busy[:n_shown]):
        n_held = f"{subscriptions[worker]:,} subscriptions" if worker < len(subscriptions) else ""
        drawn = _bar(busy, busy / most if most > 0 else 0.0, bar_width)
        grid.add_row(str(worker), drawn, f"{busy:.1%}", n_held)
    rest = snapshot.worker_busy[n_shown:]
    if rest:
        grid.add_row("…", Text(f"{len(rest)} more, the busiest:", "grey70"), f"{max(rest):.1%}", "")
    return grid


def _bar(busy: float, length: float, width: int) -> Text:
    # The rest is drawn thinner, not only darker: NO_COLOR is a setting too.
    colour = "green" if busy < 0.7 else "yellow" if busy < 0.9 else "red"
    filled = bar(length, width)
    return Text.assemble((filled, colour), ("─" * (width - len(filled)), "grey35"))


def _busy_around(snapshot: Snapshot) -> Text | None:
    return Text(f"busy around {printable(snapshot.busy_around)}", "yellow") if snapshot.busy_around else None


def _adjustments(lines: tuple[AdjustmentLine, ...], width: int) -> Group:
    shown = [Text.assemble((clock(line.elapsed_s), "grey70"), "  ", printable(line.words)) for line in lines]
    for line in shown:
        line.truncate(width, overflow="ellipsis")
        line.no_wrap = True
    return Group(*(shown or [Text("nothing to adjust so far", "grey70")]))


def _samples(samples: tuple[SampleMatch, ...], width: int) -> Group:
    lines: list[Text] = []
    for sample in samples:
        # Text objects take no markup, so a text such as "[red]" is shown as it is written.
        head = Text.assemble(
            (printable(sample.subscription_id), "grey70"),
            "  ",
            (printable(sample.expression), "bold magenta"),
            "  ",
            (printable(sample.place), "grey70"),
        )
        body = Text("  " + printable(sample.text))
        if words := set(re.findall(r"\w+", printable(sample.expression))) - _OPERATORS:
            body.highlight_regex(rf"(?i)\b({'|'.join(sorted(words))})\b", "bold green")
        for line in (head, body):
            line.truncate(width, overflow="ellipsis")
            line.no_wrap = True
            lines.append(line)
    return Group(*lines)
