"""The live view: one screen that is redrawn in place."""

from __future__ import annotations

import re
from collections import deque
from typing import TextIO

from rich.box import ROUNDED
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ps2stream.demo.charts import bar, sparkline
from ps2stream.demo.printable import clock, milliseconds, printable, share
from ps2stream.demo.snapshot import SampleMatch, Snapshot

_N_RATES = 60
_WIDEST = 100
# What a worker's line holds beside its bar.
_WORKER_FIGURES_WIDTH = 46
_MOST_WORKERS = 8
_MOST_SAMPLES = 5
# Lines of the screen that neither workers nor samples take.
_FIXED_LINES = 14
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
    n_workers = min(len(snapshot.worker_busy), _MOST_WORKERS)
    n_samples = max(1, min(_MOST_SAMPLES, (height - _FIXED_LINES - n_workers) // 2))
    sections: list[RenderableType] = [_figures(snapshot), _throughput(snapshot, rates)]
    if snapshot.worker_busy:
        sections.append(_panel("workers", _workers(snapshot, max(8, width - _WORKER_FIGURES_WIDTH)), width))
    if snapshot.samples:
        # The newest on top: what moves is where the eye already is.
        newest = snapshot.samples[::-1][:n_samples]
        sections.append(_panel("matches", _samples(newest, width - 4), width))
    head = _panel(_title(snapshot), Group(*sections[:2]), width, _time(snapshot))
    return Group(head, *sections[2:])


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


def _workers(snapshot: Snapshot, bar_width: int) -> Table:
    grid = Table.grid(expand=True, padding=(0, 1))
    grid.add_column(justify="right", style="grey70")
    grid.add_column(width=bar_width, no_wrap=True)
    grid.add_column(justify="right", style="bold")
    grid.add_column(justify="right", style="grey70")
    subscriptions = snapshot.worker_subscriptions
    for worker, busy in enumerate(snapshot.worker_busy[:_MOST_WORKERS]):
        n_held = f"{subscriptions[worker]:,} subscriptions" if worker < len(subscriptions) else ""
        grid.add_row(str(worker), _bar(busy, bar_width), f"{busy:.0%}", n_held)
    rest = snapshot.worker_busy[_MOST_WORKERS:]
    if rest:
        grid.add_row("…", Text(f"{len(rest)} more, the busiest:", "grey70"), f"{max(rest):.0%}", "")
    return grid


def _bar(busy: float, width: int) -> Text:
    # The rest is drawn thinner, not only darker: NO_COLOR is a setting too.
    colour = "green" if busy < 0.7 else "yellow" if busy < 0.9 else "red"
    filled = bar(busy, width)
    return Text.assemble((filled, colour), ("─" * (width - len(filled)), "grey35"))


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
