"""``ps2stream replay``: run an ordered event log through the whole pipeline."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ps2stream.cli.interrupts import abrupt_interrupts
from ps2stream.cli.options.output_file import check_target
from ps2stream.cli.options.settings import add_plan_file, add_settings, settings_and_plan
from ps2stream.cli.spark_log import spark_log
from ps2stream.extras import require

if TYPE_CHECKING:
    from ps2stream.config import Settings
    from ps2stream.engines.replay import Replayed
    from ps2stream.engines.tally import Tally
    from ps2stream.partitioning.plan import Plan
    from ps2stream.sources.event_log import EventLog

_DESCRIPTION = """\
Run an ordered event log through the whole pipeline, as fast as it goes.

EVENTS is a Parquet file, or a directory of them, with the columns
  seq int64, op string (publish, subscribe or unsubscribe), id string,
  lat, lon double, text string                       for publish
  expression string, min_lon, min_lat, max_lon, max_lat double   for subscribe
(null where an op has no use for a column; other columns are ignored).

DIR receives
  matches/   subscription_id, subscription_seq, publication_id, publication_seq
  rejected/  seq, op, id, reason
as Parquet; files of an earlier replay there are replaced. A replay that is stopped (Ctrl-C) leaves them
incomplete and writes no report.
"""

_EPILOG = """\
examples:
  ps2stream replay events.parquet --out result --report report.json
  ps2stream replay events/ --out result --report - --engine microbatch --workers 8
  ps2stream replay events.parquet --out result --report - --adjust off
  ps2stream replay events.parquet --out result --report - --plan plan.npz
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "replay",
        help="run an event log through the whole pipeline, as fast as it goes",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("events", metavar="EVENTS", type=Path, help="Parquet file or directory")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="where matches/ and rejected/ go"
    )
    parser.add_argument(
        "--report", metavar="FILE.json", required=True, help="where the figures of the run go; - prints them"
    )
    parser.add_argument(
        "--engine",
        choices=("inline", "microbatch"),
        default="microbatch",
        help="all roles in this process, or as a stream on Spark (default: %(default)s)",
    )
    add_plan_file(parser)
    add_settings(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import time

    if arguments.engine == "microbatch":
        require("ps2stream replay --engine microbatch", "spark")
    from ps2stream.cli.render.compilation import load_kernels
    from ps2stream.cli.render.progress import open_progress
    from ps2stream.sinks.parquet import ParquetSink
    from ps2stream.sources.event_log import EventLog

    settings, plan = settings_and_plan(arguments)
    started = time.monotonic()
    if arguments.report != "-":
        check_target("the report", Path(arguments.report))
    events = EventLog(arguments.events)
    ParquetSink.at(arguments.out).clear()
    load_kernels(quiet=arguments.quiet)
    with open_progress("replaying", events.n_events, quiet=arguments.quiet) as advance:

        def on_progress(tally: Tally) -> None:
            advance(tally.n_events, f"{tally.n_matches:,} matches")

        replay = _inline if arguments.engine == "inline" else _microbatch
        replayed = replay(events, arguments.out, settings, on_progress, plan)
        # Events that came too late are done with, too.
        advance(events.n_events, f"{replayed.tally.n_matches:,} matches")
    report = {
        "engine": arguments.engine,
        "partitioner": settings.partitioner,
        "n_workers": settings.n_workers,
        "n_dispatchers": settings.n_dispatchers,
        "batch_events": settings.batch_events,
        **replayed.tally.report(replayed.wall_s),
        "loads": replayed.loads,
        "total_s": time.monotonic() - started,
    }
    text = json.dumps(report, indent=2)
    if arguments.report == "-":
        print(text)
    else:
        Path(arguments.report).write_text(text + "\n")
    return 0


def _inline(events: EventLog, out: Path, settings: Settings, on_progress: Any, plan: Plan | None) -> Replayed:
    from ps2stream.engines.replay import replay_inline

    return replay_inline(events, out, settings, on_progress, plan)


def _microbatch(
    events: EventLog, out: Path, settings: Settings, on_progress: Any, plan: Plan | None
) -> Replayed:
    from ps2stream.engines.spark.jvm import end_jvm
    from ps2stream.engines.spark.replay import replay_microbatch
    from ps2stream.engines.spark.session import own_session

    with (
        abrupt_interrupts() as interrupts,
        spark_log(interrupts) as log,
        tempfile.TemporaryDirectory(prefix="ps2stream-replay-") as scratch,
        interrupts.tidied_by(lambda: shutil.rmtree(scratch, ignore_errors=True)),
        interrupts.tidied_by(end_jvm),
        own_session("ps2stream replay", log=log) as spark,
    ):
        return replay_microbatch(spark, events, Path(scratch), out, settings, on_progress, plan)
