"""The last words of the demo, plain text."""

from __future__ import annotations

from ps2stream.cli.render.printable import byte_count, milliseconds, share
from ps2stream.demo.snapshot import Summary

NEXT_STEPS = (
    ("ps2stream run", "keep a job running on a journal of your own"),
    ("ps2stream matches --follow", "watch what it delivers"),
    ("ps2stream explain", "ask why a publication does or does not match"),
)


def summary(final: Summary) -> str:
    """Write what the run did and how to go on; lines fit 80 columns."""
    rows = [
        ("events", f"{final.n_events:,} in {final.elapsed_s:.1f} s"),
        ("throughput", f"{final.events_per_s:,.0f} events/s"),
        ("publications", f"{final.n_publications:,}"),
        ("discarded early", f"{final.n_discarded:,} ({share(final.n_discarded, final.n_publications)})"),
        ("matches", f"{final.n_matches:,}"),
        ("rejected", f"{final.n_rejected:,}"),
        ("subscriptions", f"{final.n_subscriptions:,} live at the end"),
        ("latency", f"{milliseconds(final.latency_p50_ms)} p50, {milliseconds(final.latency_p99_ms)} p99"),
        ("adjustments", _adjustments(final)),
    ]
    lines = ["", "The demo has ended.", ""]
    lines += [f"  {name:<16}  {value}" for name, value in rows]
    if final.worker_busy:
        lines += ["", "  worker    busy  subscriptions"]
        held = dict(enumerate(final.worker_subscriptions))
        for worker, busy in enumerate(final.worker_busy):
            n_held = f"{held[worker]:,}" if worker in held else "-"
            lines.append(f"  {worker:>6}  {busy:>6.0%}  {n_held:>13}")
    lines += ["", "Go on with:", ""]
    lines += [f"  {command:<28}  {what}" for command, what in NEXT_STEPS]
    return "\n".join(lines) + "\n"


def _adjustments(final: Summary) -> str:
    if not final.n_adjustments:
        return "none"
    moved = byte_count(final.moved_bytes)
    return f"{final.n_adjustments:,}, {moved} moved, stream paused {final.paused_s:.2f} s in all"
