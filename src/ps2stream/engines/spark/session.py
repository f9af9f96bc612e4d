"""Spark sessions with settings that suit us: embedded, on one machine with nothing else, or on a cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from ps2stream.engines.spark.failures import death_of, failure_line, report_of
from ps2stream.engines.spark.java import require_java
from ps2stream.engines.spark.jvm import jvm_ended, launch_jvm, tell_its_end_in_one_line
from ps2stream.engines.spark.slots import telling_of_no_slots
from ps2stream.errors import EngineError, PS2StreamError
from ps2stream.files import AnyPath, absolute

_STARTER = Path(__file__).with_name("python.sh")

_SETTINGS = {
    "spark.python.daemon.module": "ps2stream.engines.spark.daemon",
    # Nobody looks at it on an embedded default, and it costs a port and memory a batch.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark remembers a thousand jobs and stages for its user interface: minutes of growth for nobody.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "20",
    # Few instructions of a batch are Java's: compiling them a second time, and better, took more of two cores
    # in the first minutes than it gave back.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # A Python process and the JVM wait for each other to connect: 15 s is little on a busy machine.
    "spark.python.authenticate.socketTimeout": "300s",
    # A batch is a few small tasks: waiting for a better host only costs time on one machine.
    "spark.locality.wait": "0s",
    # Spark writes two small files a batch. By default each starts several processes to look at and to set
    # permissions, 110 ms in all; so they are written and renamed, as atomically, in a tenth of it.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # The newest offsets are all that recovery needs.
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.log.level": "ERROR",
    # Retried tasks are how a killed Python process is survived (local mode does not retry by itself).
    "spark.task.maxFailures": "4",
    "spark.sql.shuffle.partitions": "2",
}


#: What a session on a cluster has besides.
_ON_A_CLUSTER = {
    # A worker's task waits this long for a slot of the host that has its index before it goes to another,
    # where the index has to be built. Any executor of the host will do. A host without executors is not
    # waited for.
    "spark.locality.wait.node": "10s",
    # Where most of a task's packets come from says nothing: they are small, an index is large.
    "spark.shuffle.reduceLocality.enabled": "false",
    # A host that is cut off says nothing. Spark waits two minutes for it, and looks once a minute; a batch
    # waits as long. After 20 s, the time-out of a lease, too, its tasks run elsewhere. A cut of few
    # seconds, and a collection of garbage, are over before that.
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "4s",
    # Who fetches packets from such a host tries three times more, with pauses: once is enough, since the
    # packets of a batch are made again in no time. The kernel itself tries for 7 s within these 10.
    "spark.shuffle.io.connectionCreationTimeout": "10s",
    # Over a connection that it has, it would wait as long as for an executor, and hold its slot for longer.
    "spark.shuffle.io.connectionTimeout": "10s",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
    # A task is not to blame for the hosts that it was lost with, nor a stage for the packets: several may go
    # while a batch runs. What fails for another reason fails as often, within seconds.
    "spark.task.maxFailures": "8",
    "spark.stage.maxConsecutiveAttempts": "8",
    # YARN and Kubernetes end a job after so many lost executors in all its life; a stream lives long.
    "spark.executor.failuresValidityInterval": "1h",
}


def local_session(
    app_name: str,
    *,
    cores: int | None = None,
    memory: str = "2g",
    log: AnyPath | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session on this machine with settings that suit PS2Stream; ``conf`` goes before them.

    What the JVM and Spark's Python processes write to stderr goes to ``log`` if one is given: a
    screen of ours should show our words only.

    ``local[n, 4]`` lets a task fail three times before the job does: plain ``local[n]`` would end
    the job with the first Python process that is killed.
    """
    _choose_python()
    # Without an address of its own Spark asks the name service, which on a laptop may hang.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    about = {"spark.master": f"local[{cores or '*'},4]", "spark.driver.memory": memory}
    return _session({**about, **(conf or {})}, app_name, log)


def cluster_session(
    app_name: str, master: str, *, log: AnyPath | None = None, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session on a cluster with settings that suit PS2Stream; ``conf`` goes before them.

    Its hosts need Python with this package (``PYSPARK_PYTHON`` names it there; by default the path of this
    one), and the store's credentials in their own environment.
    """
    return _session({"spark.master": master, **_ON_A_CLUSTER, **(conf or {})}, app_name, log)


def _session(about: dict[str, str], app_name: str, log: AnyPath | None) -> SparkSession:
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**_SETTINGS, "spark.app.name": app_name, **about}
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _kept_interrupts():
        launch_jvm(settings, None if log is None else absolute(log))
        session = builder.getOrCreate()
        tell_its_end_in_one_line(session.sparkContext)
        return session


@contextlib.contextmanager
def own_session(
    app_name: str,
    *,
    log: Path,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[SparkSession]:
    """Run a session with hot Python processes while the context lasts; say in one line when its JVM ends.

    ``master``: of a cluster; without one it runs on this machine. ``conf``: settings of Spark that go before
    ours. ``meanwhile`` is called while it starts, which takes seconds, mostly of another process.
    """
    require_java()  # before anybody does anything that a missing Java would make useless
    with ThreadPoolExecutor(1, "starting Spark") as side:
        starting = side.submit(_started, app_name, master, conf, log)
        try:
            meanwhile()
            yield starting.result()
        except Exception as error:
            # Whatever was going on failed in its own way; the reason is one.
            if ended := jvm_ended(0.0 if isinstance(error, PS2StreamError) else 1.0):
                raise EngineError(f"{ended}; what it wrote is in {log}") from error
            raise
        finally:
            with contextlib.suppress(Exception):
                starting.result().stop()


def _started(app_name: str, master: str | None, conf: Mapping[str, str] | None, log: Path) -> SparkSession:
    if master:
        spark = cluster_session(app_name, master, log=log, conf=conf)
    else:
        spark = local_session(app_name, log=log, conf=conf)
    try:
        warm_up(spark)
    except Py4JJavaError as failure:
        report = report_of(failure)
        # A death only costs time: what needs the process starts it again, and says so if that fails, too.
        if not death_of(report):
            raise EngineError(f"{failure_line(report)}; what Spark wrote is in {log}") from failure
    return spark


def _choose_python() -> None:
    """Let Python processes of Spark be this very interpreter, with its packages and no copies of Spark's."""
    os.environ["PYSPARK_DRIVER_PYTHON"] = os.environ["PS2STREAM_PYTHON"] = sys.executable
    os.environ["PS2STREAM_PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    # Whoever installed it may have lost the permission to run it; it only saves time.
    os.environ["PYSPARK_PYTHON"] = str(_STARTER) if os.access(_STARTER, os.X_OK) else sys.executable


@contextlib.contextmanager
def _kept_interrupts() -> Iterator[None]:
    """Keep our handler of Ctrl-C.

    Spark's own asks the JVM to cancel its jobs, and does so amid any conversation with it that is going on.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def is_local(context: SparkContext) -> bool:
    """Say whether all tasks run on the host of the driver."""
    return str(context.master).startswith("local")


def warm_up(spark: SparkSession) -> None:
    """Start the Python daemon and as many processes as there are cores, before anybody waits for them."""
    context = spark.sparkContext
    n = context.defaultParallelism
    with telling_of_no_slots(context):
        # An RDD, as in a batch: Spark keeps other processes, with a daemon of their own, for DataFrames.
        context.parallelize(range(n), n).mapPartitions(_unchanged).count()


def _unchanged(numbers: Iterable[int]) -> Iterable[int]:
    return numbers
