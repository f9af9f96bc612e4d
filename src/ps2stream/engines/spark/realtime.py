"""The real-time engine: dispatchers, workers and the registrar stay, as the tasks of one long Spark job.

    publications, updates --> [roles, topics between them: resident/] --> matches, rejected

Spark places the roles, gives them the package and starts each again that fails; Kafka carries and orders what
they say to each other, and lets every commit count once. The driver only watches: it reads the reports of
roles, passes requests on, and tells them to stop.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from ps2stream.config import Settings
from ps2stream.engines.board_tally import tally_of
from ps2stream.engines.held_state import HeldState, held_state
from ps2stream.engines.spark.failures import failure_line, report_of
from ps2stream.engines.spark.jvm import jvm_ended
from ps2stream.engines.spark.resident_tasks import MakeController, RoleTask, roles_of
from ps2stream.engines.spark.session import is_local
from ps2stream.engines.spark.slots import n_slots, wait_for_slots
from ps2stream.errors import ConfigError, EngineError, PS2StreamError
from ps2stream.files import AnyPath
from ps2stream.kafka.claims import claim
from ps2stream.kafka.role_reports import RoleReports
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import NOTES, KafkaWire
from ps2stream.kafka.sending import Outgoing, Sender
from ps2stream.kafka.topics import Topics
from ps2stream.metrics.board import Board
from ps2stream.metrics.measures import RoleMeasures
from ps2stream.partitioning.plan import Plan
from ps2stream.resident.config import RoleConfig
from ps2stream.resident.entries import first_entry
from ps2stream.resident.files import FIRST_SNAPSHOT, RoleFiles
from ps2stream.resident.handover import handed_over
from ps2stream.resident.idleness import RolesIdleness
from ps2stream.resident.trimming import TRIM_S
from ps2stream.resident.wire import DISPATCHER, RoleName
from ps2stream.sinks.match_records import MatchFormat
from ps2stream.state.state import State

ENGINE = "realtime"
#: How often a task of a role may fail: a role lives long, and whatever befalls its host is not its fault.
MOST_FAILURES = 100_000
#: When no executor has come for so long, no more will: without a slot for each role nothing can run at all,
#: so one that is slow to start is worth more patience than where roles only share slots.
_SLOTS_S = 30.0
_STOP_S = 15.0
_TELL_S = 1.0
_LOOK_S = 0.5
_POLL_S = 0.05


def realtime_conf(settings: Settings, *, on_cluster: bool) -> dict[str, str]:
    """Return the settings of Spark that resident roles need, on this machine or on a cluster."""
    n = len(roles_of(settings))
    conf = {
        "spark.task.maxFailures": str(MOST_FAILURES),
        "spark.stage.maxConsecutiveAttempts": str(MOST_FAILURES),
    }
    # On one machine roles share its cores: most of them wait most of the time.
    return conf if on_cluster else {**conf, "spark.master": f"local[{n},{MOST_FAILURES}]"}


@dataclass(frozen=True, slots=True)
class RealtimeOptions:
    """How resident roles run, apart from their settings.

    ``plan``: makes one for the first start. ``has_given_order``: events bring their seqs (a replay).
    ``make_controller``: who adjusts the load, if not the one that the settings ask for. ``board``: where what
    roles say of themselves is hung up. The others as in RoleConfig.
    """

    plan: Callable[[], Plan]
    match_format: MatchFormat = "arrow"
    has_given_order: bool = False
    is_exact: bool = True
    make_controller: MakeController | None = None
    snapshot_every: int = 100_000
    report_s: float = 1.0
    trim_s: float = TRIM_S
    board: Board = field(default_factory=lambda: Board(ENGINE))


@contextlib.contextmanager
def realtime_stream(
    spark: SparkSession,
    topics: Topics,
    state: AnyPath,
    settings: Settings,
    options: RealtimeOptions,
) -> Iterator[RealtimeStream]:
    """Run the roles of a deployment while the context lasts; they go on where they were stopped."""
    topics.create()
    role_topics = RoleTopics(topics, settings.n_workers)
    role_topics.create(settings.n_dispatchers)
    _need_slots(spark, settings)
    with held_state(state, on_cluster=not is_local(spark.sparkContext)) as held:
        task = _role_task(held.start(), role_topics, settings, options)
        stream = RealtimeStream(spark, task, held, options.board)
        try:
            stream.start()
            yield stream
        finally:
            stream.stop()


def _role_task(mine: State, topics: RoleTopics, settings: Settings, options: RealtimeOptions) -> RoleTask:
    """Make the state of a first start, check that of a later one; return what tasks have to know."""
    files = RoleFiles(mine.store.under("resident"))
    if not mine.job_file.exists():
        plan = options.plan()
        files.write_snapshot(first_entry(files.write_plan(plan)), FIRST_SNAPSHOT)
        mine.job_file.create(settings, plan.number, mine.epoch, engine=ENGINE)
    mine.job_file.check(settings)
    mine.job_file.check_engine(ENGINE)
    claim(topics.topics, mine.job_file.job_id)
    _take_over_dispatchers(topics)
    config = RoleConfig(
        settings,
        files,
        uuid.uuid4().hex,
        n_match_partitions=topics.topics.n_partitions(topics.topics.matches),
        has_given_order=options.has_given_order,
        is_exact=options.is_exact,
        match_format=options.match_format,
        snapshot_every=options.snapshot_every,
        report_s=options.report_s,
        trim_s=options.trim_s,
    )
    if options.make_controller is None:
        return RoleTask(config, topics, mine)
    return RoleTask(config, topics, mine, options.make_controller)


def _take_over_dispatchers(topics: RoleTopics) -> None:
    """Settle what all dispatchers have done that have ever been, and let none of them go on.

    There may have been more or fewer of them, and a partition another's.
    """
    for number in topics.numbers(DISPATCHER, topics.topics.n_partitions(topics.name(NOTES))):
        wire = KafkaWire(topics, RoleName(DISPATCHER, number))
        try:
            handed_over(wire, number, topics.n_workers)
        finally:
            wire.close()


def _need_slots(spark: SparkSession, settings: Settings) -> None:
    """Refuse what would wait for ever: a role without a slot never runs, and all others wait for it."""
    needed = len(roles_of(settings))
    context = spark.sparkContext
    found = n_slots(context) if is_local(context) else wait_for_slots(context, needed, _SLOTS_S)
    if found < needed:
        raise ConfigError(
            f"resident roles need a slot each: 1 registrar, {settings.n_dispatchers} dispatchers and "
            f"{settings.n_workers} workers need {needed}; {context.master} has {found}. "
            "Use fewer workers or dispatchers, or more executor cores; another driver, "
            "also one that is paused, keeps those that it has"
        )


@dataclass(slots=True)
class RealtimeStream:
    """Own the job; somebody has to ``check`` it now and then. ``board``: what its roles say of themselves."""

    spark: SparkSession
    task: RoleTask
    held: HeldState
    board: Board
    _job: InheritableThread | None = None
    _watching: threading.Thread | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _failure: Exception | None = None

    def start(self) -> None:
        """Start the roles; return when Spark knows of them."""
        self._job = InheritableThread(target=self._run, name="roles", daemon=True)
        self._job.start()
        self._watching = threading.Thread(target=self._watch, name="reports", daemon=True)
        self._watching.start()

    @property
    def state(self) -> State:
        return self.task.state

    @property
    def n_subscriptions(self) -> int:
        """Return how many live, as the registrar has reported."""
        return tally_of(self.board, self.task.config.settings).n_subscriptions

    @property
    def n_starts_again(self) -> int:
        """Return 0: roles are started again one by one, and the board counts that."""
        return 0

    @property
    def is_busy(self) -> bool:
        """Say no: what roles have committed is done."""
        return False

    def process_all_available(self) -> None:
        """Return when all events that are there now are processed, and that is noted."""
        idleness = RolesIdleness(self.task.topics)
        while not idleness.is_idle():
            self.check()
            time.sleep(_POLL_S)

    def check(self) -> None:
        """Raise what ended the roles, or must end them."""
        self.held.check()
        if self._failure is not None:
            raise self._failure
        if self._job is not None and not self._job.is_alive() and not self._stopped.is_set():
            raise EngineError("the roles have ended, and nobody told them to")

    def wait_for_reports(self) -> None:
        """Return when every role has reported once more."""
        time.sleep(1.5 * self.task.config.report_s)

    def stop(self) -> None:
        """Tell the roles to commit what they have and to end; end them after some seconds."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        until = time.monotonic() + _STOP_S
        while self._job is not None and self._job.is_alive() and time.monotonic() < until:
            # Again and again: a registrar that starts just now does not hear what was said before.
            with contextlib.suppress(PS2StreamError):
                self._tell(f"stop {self.task.config.run}")
            self._job.join(_TELL_S)
        while self._job is not None and self._job.is_alive():
            with contextlib.suppress(Py4JError, OSError):
                self.spark.sparkContext.cancelJobGroup(self._group)
            self._job.join(_LOOK_S)
        if self._watching is not None:
            self._watching.join(_LOOK_S)

    @property
    def _group(self) -> str:
        return f"ps2stream-{self.task.config.run}"

    def _tell(self, words: str) -> None:
        topics = self.task.topics
        Sender(topics.topics.kafka).send([Outgoing(topics.name("control"), 0, words.encode())])

    def _run(self) -> None:
        context = self.spark.sparkContext
        n = len(roles_of(self.task.config.settings))
        try:
            context.setJobGroup(self._group, "resident roles", interruptOnCancel=True)
            # Nothing but partitions: a role needs its number only.
            context.parallelize([], n).mapPartitionsWithIndex(self.task).collect()
        except Exception as error:
            if not self._stopped.is_set():
                ended = jvm_ended()
                self._failure = EngineError(ended or failure_line(report_of(error)))

    def _watch(self) -> None:
        """Read reports until stopped; pass requests on."""
        reports, state = RoleReports(self.task.topics), self.task.state
        try:
            asked_at = time.monotonic()
            while not self._stopped.is_set():
                for kind, value in reports.poll(_LOOK_S):
                    if kind == b"measures":
                        self.board.post(RoleMeasures.from_json(value))
                if time.monotonic() - asked_at > 1.0:
                    asked_at = time.monotonic()
                    if state.mailbox.take_request():
                        self._tell("repartition")
        except Exception as error:  # who watches the stream should know why there is nothing to see
            self._failure = self._failure or error
        finally:
            reports.close()
