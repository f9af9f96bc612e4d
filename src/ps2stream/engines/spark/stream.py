"""Start the engine: on a journal, or on any DataFrame of events that a user has."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from ps2stream.adjusting.controller import Controller, controller_of
from ps2stream.config import Settings
from ps2stream.engines.background import background_thread
from ps2stream.engines.durable_job import SNAPSHOT_EVERY, BatchDone
from ps2stream.engines.held_state import held_state
from ps2stream.engines.kernel_warmup import warm
from ps2stream.engines.spark.dataframes import check_events, has_seq
from ps2stream.engines.spark.job import MicroBatchJob, SparkTasks
from ps2stream.engines.spark.query import StructuredQuery, spark_loop
from ps2stream.engines.spark.running_stream import RunningStream, Started, running
from ps2stream.engines.spark.session import is_local
from ps2stream.engines.spark.stages import ReadMatches
from ps2stream.engines.stream_start import OnBatch, StreamOptions, StreamStart
from ps2stream.errors import ConfigError
from ps2stream.files import AnyPath, absolute
from ps2stream.journal import Journal
from ps2stream.model.events import conform, numbered
from ps2stream.model.schemas import EVENTS, MATCHES, PUBLISH, empty
from ps2stream.partitioning.plan import Plan
from ps2stream.partitioning.sample import Sample
from ps2stream.planning.first_plan import first_plan, journal_sample
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.sinks.sink import Sink
from ps2stream.sources.feed import Feed
from ps2stream.sources.journal_feed import JournalFeed
from ps2stream.sources.spool import FIRST_SEQ
from ps2stream.store.contract import delete_all
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.urls import store_at

#: The name by which threads of a query of Structured Streaming know its id.
_QUERY_ID = "sql.streaming.queryId"


def _ignore(done: BatchDone) -> None:
    """Take notice of nothing."""


@contextlib.contextmanager
def journal_stream(
    spark: SparkSession,
    journal: AnyPath,
    state: AnyPath,
    out: AnyPath,
    settings: Settings,
    *,
    plan: Plan | None = None,
    on_batch: OnBatch = _ignore,
    interval_s: float = 0.0,
    prune: bool = False,
    snapshot_every: int = SNAPSHOT_EVERY,
    controller: Controller | None = None,
) -> Iterator[RunningStream]:
    """Run the stream of a journal while the context lasts; it goes on where it was stopped or killed.

    The first start takes the plan that is given, or makes one from what the journal holds by then; later ones
    go on with it. ``snapshot_every``: after this many updates, or as many as there are subscriptions, a
    snapshot replaces the subscription log. ``controller``: who adjusts the load, if not the one
    that the settings ask for.
    """
    journal = absolute(journal)
    with Journal.open(journal) as opened:
        feed = JournalFeed(opened, journal)
        options = StreamOptions(plan, interval_s, prune, snapshot_every, controller)
        with feed_stream(
            spark,
            feed,
            (state, ParquetSink.at(out)),
            settings,
            options,
            on_batch,
            lambda: journal_sample(journal, settings),
        ) as stream:
            yield stream


@contextlib.contextmanager
def feed_stream(
    spark: SparkSession,
    feed: Feed,
    where: tuple[AnyPath, Sink],
    settings: Settings,
    options: StreamOptions,
    on_batch: OnBatch,
    sample: Callable[[], Sample],
) -> Iterator[RunningStream]:
    """Run the stream of any feed; ``where``: the place of the state, and the sink.

    ``sample``: what the first plan is made from where none is given.
    """
    state, sink = where
    with (
        held_state(state, on_cluster=not is_local(spark.sparkContext)) as held,
        background_thread("replanning") as background,
    ):
        from_state = StreamStart(held, feed, sink, settings, options, sample, background)

        def start(on_done: OnBatch) -> Started:
            batches = from_state.batches(SparkTasks(spark, settings), on_done)
            loop = spark_loop(spark.sparkContext, batches.process_next, options.interval_s, feed.look_every_s)
            return batches.job, loop

        background.submit(warm)  # what the driver itself will need for the first adjustment
        with running(start, on_batch, held.check) as stream:
            yield stream


@contextlib.contextmanager
def events_stream(
    events: DataFrame,
    state: AnyPath,
    out: AnyPath,
    settings: Settings,
    *,
    sample: pa.RecordBatch | None = None,
    checkpoint: AnyPath | None = None,
    on_batch: OnBatch = _ignore,
    interval_s: float = 0.0,
) -> Iterator[RunningStream]:
    """Run a streaming DataFrame of events (schema EVENTS) while the context lasts.

    Its seqs must rise from batch to batch; an event at or below the last seq of an earlier batch is
    rejected. Within a batch the order of rows does not matter. Spark's file source takes files in the order
    of their times of modification and those of the same millisecond in any: where it takes a few files a
    batch (``maxFilesPerTrigger``), times must rise with seqs.

    Without a column ``seq`` events count in the order of batches, and within one its updates come before
    its publications (docs/semantics.md, "Events without a seq"). A state keeps to the kind it was begun with.

    The first plan is made from ``sample``, or from the file that the settings name for it; without
    either the world is cut evenly.

    ``checkpoint``: where Spark notes which events a batch has, as Spark names files; by default on this host,
    with the state or, where that is elsewhere, in a directory that a driver on another host would not find.
    """
    if not events.isStreaming:
        raise ConfigError("events_stream needs a streaming DataFrame; use match_events for a finite one")
    check_events(events)
    sink, spark, numbers = ParquetSink.at(out), events.sparkSession, not has_seq(events)
    with (
        held_state(state, on_cluster=not is_local(spark.sparkContext)) as held,
        background_thread("replanning") as background,
    ):

        def start(on_done: OnBatch) -> Started:
            mine = held.start()
            if not mine.job_file.exists():
                mine.create(first_plan(_in_order(sample), settings), settings, numbers_events=numbers)
            opened = mine.open(settings, numbers_events=numbers)
            job = MicroBatchJob(spark, opened, settings, sink, on_done)
            job.controller = controller_of(settings, background)
            job.start()
            writer = events.writeStream.foreachBatch(_of_one_checkpoint(spark, job))
            writer = writer.option("checkpointLocation", str(checkpoint or opened.host.checkpoint))
            query = writer.trigger(processingTime=f"{round(interval_s * 1000)} milliseconds").start()
            return job, StructuredQuery(query)

        background.submit(warm)
        with running(start, on_batch, held.check) as stream:
            yield stream


def _of_one_checkpoint(spark: SparkSession, job: MicroBatchJob) -> Callable[[DataFrame, int], None]:
    """Let a job process the batches of one checkpoint of Spark only.

    Those of another have the same numbers, and other events: the job would take some for what it has decided.
    """
    is_known = False

    def process(batch: DataFrame, batch_id: int) -> None:
        nonlocal is_known
        if not is_known:  # the id of a query is kept in its checkpoint
            query_id = spark.sparkContext.getLocalProperty(_QUERY_ID)
            job.state.ledger.bind(f"the checkpoint {query_id} of Spark")
            is_known = True
        job.process_events(batch, batch_id)

    return process


def match_events(
    events: DataFrame, settings: Settings | None = None, *, store: AnyPath | None = None
) -> DataFrame:
    """Match a finite DataFrame of events; return the DataFrame of their matches.

    Without a column ``seq`` all its updates come before all its publications, each in the order of rows.
    The matches lie in a temporary directory of this host until the Python process ends; on a cluster in a
    part of ``store`` (default: ``PS2STREAM_STORE``), a URL or a directory that all its hosts reach.
    """
    if events.isStreaming:
        raise ConfigError("match_events needs a finite DataFrame; use events_stream for a stream")
    check_events(events)
    settings, spark = settings or Settings(), events.sparkSession
    home = _temporary_home(spark, store)
    plan = first_plan(some_of_both(events, settings.sample_events), settings)
    sink = ParquetSink.at(f"{home}/out")
    numbers = not has_seq(events)
    with held_state(f"{home}/state", on_cluster=not is_local(spark.sparkContext)) as held:
        state = held.start().create(plan, settings, numbers_events=numbers)
        job = MicroBatchJob(spark, state.open(settings, numbers_events=numbers), settings, sink)
        job.start()
        job.process_events(events, 0)
    sink.finish()
    return read_matches(spark, f"{home}/out")


def _temporary_home(spark: SparkSession, store: AnyPath | None) -> str:
    """Return where a finite job may leave its files until this process ends."""
    if is_local(spark.sparkContext):
        directory = tempfile.mkdtemp(prefix="ps2stream-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        return directory
    store = store or os.environ.get("PS2STREAM_STORE")
    if not store:
        raise ConfigError(
            f"match_events on {spark.sparkContext.master} needs a store that all hosts of the cluster reach: "
            "store=..., or PS2STREAM_STORE"
        )
    home = f"{str(store).rstrip('/')}/batch-{uuid.uuid4().hex}"
    atexit.register(delete_all, store_at(home))
    return home


def read_matches(spark: SparkSession, out: AnyPath) -> DataFrame:
    """Read the matches that are in a sink now."""
    sink, schema = ParquetSink.at(out), from_arrow_schema(MATCHES)
    if isinstance(sink.store, DirectoryStore):
        return spark.read.schema(schema).parquet(sink.matches.location())
    # Spark reads object stores by jars that it does not come with; our tasks have a client of their own.
    keys = spark.createDataFrame([(key,) for key in sink.matches.list()], "key string")
    return keys.repartition(max(1, keys.count())).mapInArrow(ReadMatches(sink.matches), schema)


def stream_matches(spark: SparkSession, out: AnyPath) -> DataFrame:
    """Read the matches of a sink as a stream: those that are there and those to come, each once."""
    sink = ParquetSink.at(out)
    sink.finish()  # Spark follows only what exists
    return spark.readStream.schema(from_arrow_schema(MATCHES)).parquet(sink.matches.location())


def some_of_both(events: DataFrame, n_events: int) -> pa.RecordBatch:
    """Take updates and publications, the first that Spark comes upon.

    They are in the order of their seq, or updates first. The rest is not computed. How the kinds are mixed
    cannot be told from it.
    """
    is_publish = events["op"] == PUBLISH
    publications = events.where(is_publish).limit(n_events - n_events // 2)
    updates = events.where(~is_publish).limit(n_events // 2)
    batches = updates.unionAll(publications).toArrow().combine_chunks().to_batches()
    return _in_order(batches[0] if batches else None)


def _in_order(events: pa.RecordBatch | None) -> pa.RecordBatch:
    """Order some events by seq; number those that come without."""
    if events is None:
        return empty(EVENTS)
    return conform(events).sort_by("seq") if "seq" in events.schema.names else numbered(events, FIRST_SEQ)
