"""``ps2stream run``: match the stream of a deployment, for as long as it is wanted."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ps2stream.cli import exit_codes
from ps2stream.cli.interrupts import Interrupts, abrupt_interrupts, ending_of
from ps2stream.cli.job_board import job_board, roles_board, roles_idleness
from ps2stream.cli.options.arguments import seconds
from ps2stream.cli.options.cluster import add_cluster, master_from, needed_store, store_from
from ps2stream.cli.options.delivery import add_delivery, check_delivery
from ps2stream.cli.options.engine import (
    INLINE,
    MICROBATCH,
    REALTIME,
    add_engine,
    check_inline,
    check_realtime,
)
from ps2stream.cli.options.home import add_home, home_from
from ps2stream.cli.options.metrics import add_metrics, metrics_served
from ps2stream.cli.options.settings import add_plan_file, add_settings, settings_and_plan
from ps2stream.cli.render.output import note
from ps2stream.cli.render.printable import counted
from ps2stream.cli.streams import Job, running_stream
from ps2stream.deployment.home import Home
from ps2stream.extras import require

if TYPE_CHECKING:
    from ps2stream.config import Settings
    from ps2stream.engines.live_stream import LiveStream
    from ps2stream.engines.meter import Meter
    from ps2stream.engines.roles_meter import RolesMeter
    from ps2stream.state.state import State

_POLL_S = 0.05

_DESCRIPTION = """\
Match the stream of a journal, or of topics of Kafka, for as long as you let it.

The job takes events from HOME/journal as others append them (ps2stream publish, subscribe,
unsubscribe, or the Python API), keeps its state in HOME/state and writes
  HOME/out/matches/   subscription_id, subscription_seq, publication_id, publication_seq
  HOME/out/rejected/  seq, op, id, reason
as Parquet, every match exactly once. Stop it with Ctrl-C (exit code 130) or SIGTERM (143), or kill it:
started again, it goes on where it was. If a process of Spark dies, the job goes on by itself, and says so.
A line of figures every few seconds goes to stderr.

With --engine inline all of it is in this process: no Spark, no Java, the same files and the same care. Events
are delivered within milliseconds, and one core does the work. Each engine goes on where the other was
stopped. It writes files of matches for every batch, and batches are small: --interval S makes them fewer.
It has one worker unless --workers says otherwise: name more if the job is to go on on Spark.

With --engine realtime dispatchers, workers and the registrar stay resident as tasks of one Spark job, with
topics of Kafka between them (--kafka). A match is delivered within some tens of milliseconds, on any number
of hosts, once for readers of what is committed; a publication may say 'after' which update it wants to be
matched, or 'as_of' which (docs/semantics.md). Each role needs a slot: 1 + dispatchers + workers.

With --store, from the first start on, state and output are STORE/state and STORE/out. HOME keeps the
journal and a note of the store, by which later starts and all other commands find them. On a cluster
(--master) the hosts share nothing but the store; credentials are taken from the environment of every
host, as everywhere (AWS_ACCESS_KEY_ID and so on).

With --kafka the events are those of the topics PREFIX.publications and PREFIX.updates, as JSON, GeoJSON
or packets of Arrow, and matches and rejected records go to PREFIX.matches and PREFIX.rejected, each once
for readers of what is committed. Topics that are not there are made. The state is STORE/PREFIX/state, or
HOME/state where all is on one host.

The first start makes the plan, from what there is by then (or --sample FILE, or --plan
FILE); later ones go on with it, and need the same --partitioner and --stop-words, and --workers if given.
When load drifts it is moved, and plans are made anew: 'ps2stream status' shows the loads,
'ps2stream adjustments' what was done, 'ps2stream top' how it is doing now.
"""

_EPILOG = """\
examples:
  ps2stream run
  ps2stream run --engine inline                 without Spark, in this process
  ps2stream run --home /var/lib/alerts --workers 8 --prune
  ps2stream run --until-idle                    process what is there, then stop
  ps2stream run --metrics 9464                  Prometheus reads http://127.0.0.1:9464/metrics
  ps2stream run --master spark://host:7077 --store s3://bucket/alerts --conf spark.executor.memory=8g
  ps2stream run --kafka broker:9092 --topics alerts --match-format json
  ps2stream run --kafka broker:9092 --engine realtime --workers 4 --dispatchers 1
"""


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="match the events of a deployment until stopped",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_home(parser, store=False)
    add_engine(parser, MICROBATCH, (MICROBATCH, INLINE, REALTIME))
    parser.add_argument("--until-idle", action="store_true", help="stop when all events are processed")
    parser.add_argument(
        "--prune", action="store_true", help="drop events where they come from once they are processed"
    )
    add_delivery(parser)
    parser.add_argument(
        "--interval",
        metavar="S",
        type=seconds,
        default=0.0,
        help="seconds from the start of a batch to that of the next; 0: as soon as events come (default: 0)",
    )
    parser.add_argument(
        "--report-every",
        metavar="S",
        type=seconds,
        default=5.0,
        help="seconds between lines of figures (default: 5)",
    )
    parser.add_argument("--json", action="store_true", help="figures as lines of JSON on stdout, for scripts")
    add_metrics(parser)
    add_cluster(parser)
    add_plan_file(parser)
    add_settings(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.engine != INLINE:
        require(f"ps2stream run --engine {arguments.engine}", "spark")
    settings, plan = settings_and_plan(arguments)
    home = home_from(arguments)
    check_delivery(arguments, home)
    if arguments.engine == INLINE:
        check_inline(arguments, home)
    if arguments.engine == REALTIME:
        check_realtime(home)
    if arguments.workers is None and plan is None:
        settings = replace(settings, n_workers=_usual_workers(arguments, home, settings))
    state = _checked_state(arguments, home, settings)
    from ps2stream.deployment.idleness import Idleness
    from ps2stream.engines.meter import Meter
    from ps2stream.engines.roles_meter import RolesMeter

    note("starting")
    is_resident = arguments.engine == REALTIME
    meter = Meter(settings, keeps_latencies=False)
    with (
        abrupt_interrupts() as interrupts,
        metrics_served(arguments, arguments.engine) as board,
        closing(home.events()) as events,
        running_stream(
            Job(home, settings, plan, arguments, meter, board), interrupts, state.host.spark_log
        ) as stream,
        roles_board(board, home, stream) if is_resident else job_board(board, home, events, meter, stream),
        interrupts.held(),
    ):
        where = f" with its state in {home.store}" if home.store else ""
        note(f"running on {home}{where} (stop with Ctrl-C)")
        lines = _Lines(RolesMeter(board, settings) if is_resident else meter, stream, arguments)
        idleness = roles_idleness(home, settings) if is_resident else Idleness(home, events)
        _watch(stream, lines, interrupts, lambda: arguments.until_idle and idleness.is_idle())
    lines.print()
    if interrupts:
        note(f"ps2stream: {ending_of(interrupts.exit_code)}; start again to go on from here")
    return interrupts.exit_code if interrupts else exit_codes.DONE


def _usual_workers(arguments: argparse.Namespace, home: Home, settings: Settings) -> int:
    """Return how many workers a job has where nobody says: as many as at its first start."""
    if home.has_state:
        return home.settings().n_workers
    # In one process they would take turns, and each has its share of what a batch costs.
    return 1 if arguments.engine == INLINE else settings.n_workers


def _store(arguments: argparse.Namespace, home: Home) -> str | None:
    """Return the URL of the store that the job has its state in; None where that is the home."""
    from ps2stream.deployment.store_note import url_of

    given = store_from(arguments)
    if given is not None:
        return url_of(given)
    noted, master = home.store, master_from(arguments)
    return noted if master is None else needed_store(master, noted)


def _checked_state(arguments: argparse.Namespace, home: Home, settings: Settings) -> State:
    """Return the state of a home; refuse before Spark starts what would be refused after it."""
    from ps2stream.state.job_file import BATCHES

    if home.topics is not None:
        if (master := master_from(arguments)) is not None:
            needed_store(master, home.store)
        home.events(create=True).close()
        state = _unheld(home, home.store, settings) if home.store is not None else _in_home(home, settings)
        if state.job_file.exists():
            state.job_file.check_engine(arguments.engine if arguments.engine == REALTIME else BATCHES)
        return state
    store = _store(arguments, home)
    state = _in_home(home, settings) if store is None else _in_store(home, store, settings)
    home.events(create=True).close()
    return state


def _in_home(home: Home, settings: Settings) -> State:
    from ps2stream.errors import StateError
    from ps2stream.state.state import State

    state = State.at(home.state)
    if state.job_file.exists():
        if state.host.lock.is_held():
            raise StateError(f"another job is running on the state in {home.state}")
        state.job_file.check(settings)
    return state


def _in_store(home: Home, store: str, settings: Settings) -> State:
    """Check a state in a store, and bind home and store to each other before anything is made there."""
    from ps2stream.deployment.store_note import StoreNote

    binding = StoreNote(home.directory)
    binding.check(store)
    state = _unheld(home, store, settings)
    binding.write(store)
    return state


def _unheld(home: Home, store: str, settings: Settings) -> State:
    """Return a state in a store that fits the settings and that no driver holds."""
    from ps2stream.deployment.home import newest_state
    from ps2stream.state.lease import refuse_if_held

    state = newest_state(home.state_in(store))
    if state.job_file.exists():
        state.job_file.check(settings)
    if refuse_if_held(state.store):
        note("the driver before has not let go: it is taken over when it has been silent for some 20 s")
    return state


def _watch(stream: LiveStream, lines: _Lines, interrupts: Interrupts, is_idle: Callable[[], bool]) -> None:
    """Print lines until the job is told to stop, or has nothing left to do and may stop."""
    while not (interrupts or is_idle()):
        stream.check()
        lines.print_when_due()
        time.sleep(_POLL_S)
    # What is processed may still have to be entered into the meter, whose last line follows.
    while not interrupts and stream.is_busy:
        stream.check()
        time.sleep(_POLL_S)


class _Lines:
    """The lines of figures: for people on stderr, for scripts as JSON on stdout."""

    def __init__(self, meter: Meter | RolesMeter, stream: LiveStream, arguments: argparse.Namespace) -> None:
        self._meter = meter
        self._stream = stream
        self._as_json = arguments.json
        self._every_s = arguments.report_every
        self._started = self._next = time.monotonic()

    def print_when_due(self) -> None:
        if time.monotonic() >= self._next:
            self.print()
            self._next = time.monotonic() + self._every_s

    def print(self) -> None:
        tally, recent = self._meter.tally, self._meter.recent()
        elapsed_s = time.monotonic() - self._started
        # Before its first batch a job has said nothing of its subscriptions.
        n_subscriptions = tally.n_subscriptions if self._meter.n_batches else self._stream.n_subscriptions
        if self._as_json:
            line = {
                "elapsed_s": round(elapsed_s, 3),
                "events": tally.n_events,
                "publications": tally.n_publications,
                "matches": tally.n_matches,
                "rejected": tally.n_rejected,
                "subscriptions": n_subscriptions,
                "events_per_s": recent.events_per_s,
                "latency_p50_ms": _or_none(recent.latency_p50_ms),
                "latency_p99_ms": _or_none(recent.latency_p99_ms),
            }
            print(json.dumps(line), flush=True)
            return
        figures = [
            f"{counted(tally.n_events, 'event')} ({recent.events_per_s:,.0f}/s)",
            counted(tally.n_matches, "match", "matches"),
            f"{tally.n_rejected:,} rejected",
            counted(n_subscriptions, "subscription"),
        ]
        if not math.isnan(recent.latency_p50_ms):
            figures.append(f"latency {recent.latency_p50_ms:,.0f} ms p50")
        note(f"{elapsed_s:7.0f} s  {', '.join(figures)}")


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
