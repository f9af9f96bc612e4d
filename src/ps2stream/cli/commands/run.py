"""``ps2stream run``: match the stream of a journal, for as long as it is wanted."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
from typing import TYPE_CHECKING, Any

from ps2stream.cli.options.home import add_home, home_from
from ps2stream.cli.options.settings import add_plan_file, add_settings, settings_and_plan

if TYPE_CHECKING:
    from ps2stream.engines.spark.meter import Meter
    from ps2stream.journal import Journal
    from ps2stream.state.state import State

_DESCRIPTION = """\
Match the stream of a journal, for as long as you let it.

The job takes events from HOME/journal as others append them (ps2stream publish, subscribe,
unsubscribe, or the Python API), keeps its state in HOME/state and writes
  HOME/out/matches/   subscription_id, subscription_seq, publication_id, publication_seq
  HOME/out/rejected/  seq, op, id, reason
as Parquet, every match exactly once. Stop it with Ctrl-C or kill it: started again, it goes on
where it was. A line of figures every few seconds goes to stderr.

The first start makes the plan, from what the journal holds by then (or --sample FILE, or --plan
FILE); later ones go on with it. When load drifts it is moved, and plans are made anew: 'ps2stream
status' shows the loads, 'ps2stream adjustments' what was done.
"""

_EPILOG = """\
examples:
  ps2stream run
  ps2stream run --home /var/lib/alerts --workers 8 --prune
  ps2stream run --until-idle                    process what is there, then stop
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="run the job that matches a journal's stream",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_home(parser)
    parser.add_argument(
        "--until-idle", action="store_true", help="stop when everything in the journal is processed"
    )
    parser.add_argument(
        "--prune", action="store_true", help="drop events from the journal once they are processed"
    )
    parser.add_argument(
        "--interval", metavar="S", type=float, default=0.0, help="seconds between batches (default: 0)"
    )
    parser.add_argument(
        "--report-every", metavar="S", type=float, default=5.0, help="seconds between lines (default: 5)"
    )
    parser.add_argument("--json", action="store_true", help="lines of JSON, for scripts")
    add_plan_file(parser)
    add_settings(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import time

    from ps2stream.cli.render.compilation import load_kernels
    from ps2stream.engines.spark.meter import Meter
    from ps2stream.engines.spark.session import local_session, warm_up
    from ps2stream.engines.spark.stream import journal_stream
    from ps2stream.engines.spark.watch import raise_failure
    from ps2stream.journal import Journal
    from ps2stream.state.state import State

    settings, plan = settings_and_plan(arguments)
    home = home_from(arguments)
    Journal.open(home.journal, create=True).close()
    signal.signal(signal.SIGTERM, _interrupt)
    meter, state = Meter(settings), State(home.state)
    started = time.monotonic()
    print("starting", file=sys.stderr)
    load_kernels()
    spark = local_session("ps2stream run", log=home.state / "spark.log")
    try:
        warm_up(spark)
        with (
            Journal.open(home.journal) as journal,
            journal_stream(
                spark,
                home.journal,
                home.state,
                home.out,
                settings,
                plan=plan,
                on_batch=meter.add,
                interval_s=arguments.interval,
                prune=arguments.prune,
            ) as query,
        ):
            print(f"running on {home.directory} (stop with Ctrl-C)", file=sys.stderr)
            next_line = started
            while not (arguments.until_idle and _is_idle(journal, state)):
                raise_failure(query)
                if time.monotonic() >= next_line:
                    _print_line(meter, time.monotonic() - started, as_json=arguments.json)
                    next_line = time.monotonic() + arguments.report_every
                time.sleep(0.1)
            # What is processed may still have to be entered into the meter, whose last line follows, and
            # Spark has to note that the batch is done: else it would run again with the next start.
            while query.status["isTriggerActive"]:
                raise_failure(query)
                time.sleep(0.02)
    except KeyboardInterrupt:
        print("stopped; start again to go on from here", file=sys.stderr)
    finally:
        spark.stop()
    _print_line(meter, time.monotonic() - started, as_json=arguments.json)
    return 0


def _is_idle(journal: Journal, state: State) -> bool:
    """Say whether everything that the journal holds has been processed."""
    end = journal.last()
    return end.position == 0 or state.last_seq() >= end.seq


def _interrupt(signal_number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _print_line(meter: Meter, elapsed_s: float, *, as_json: bool) -> None:
    tally, recent = meter.tally, meter.recent()
    if as_json:
        line = {
            "elapsed_s": round(elapsed_s, 3),
            "events": tally.n_events,
            "publications": tally.n_publications,
            "matches": tally.n_matches,
            "rejected": tally.n_rejected,
            "subscriptions": tally.n_subscriptions,
            "events_per_s": recent.events_per_s,
            "latency_p50_ms": _or_none(recent.latency_p50_ms),
            "latency_p99_ms": _or_none(recent.latency_p99_ms),
        }
        print(json.dumps(line), flush=True)
        return
    figures = [
        f"{tally.n_events:,} events ({recent.events_per_s:,.0f}/s)",
        f"{tally.n_matches:,} matches",
        f"{tally.n_rejected:,} rejected",
        f"{tally.n_subscriptions:,} subscriptions",
    ]
    if not math.isnan(recent.latency_p50_ms):
        figures.append(f"latency {recent.latency_p50_ms:,.0f} ms p50")
    print(f"{elapsed_s:7.0f} s  {', '.join(figures)}", file=sys.stderr)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
