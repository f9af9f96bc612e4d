"""The job of a campaign on resident roles: a driver in a process of its own.

    python roles_job.py WHERE SEED SERVERS PREFIX ORDER N_WORKERS N_DISPATCHERS PARTITIONER [DELIVERY]

Runs on the cluster of the environment (PS2STREAM_MASTER), else on this machine; adjusts the load at random by
SEED. ORDER: ``given`` or ``arrival``. DELIVERY: ``exactly-once`` or ``at-least-once``. Writes a line of JSON
when all roles have reported, and now and then after that; when its stdin closes it ends. Exit codes as those
of ``job.py``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession

from engines.spark.faults.job import FENCED, tell
from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.engines.spark.realtime import RealtimeOptions, realtime_conf, realtime_stream
from ps2stream.engines.spark.resident_tasks import roles_of
from ps2stream.engines.spark.session import cluster_session, local_session
from ps2stream.errors import FencedError, PS2StreamError
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.topics import Topics
from ps2stream.planning.first_plan import first_plan
from ps2stream.testing.generators import random_events
from resident.restless import MakeRestless

AT_LEAST_ONCE = "at-least-once"
#: Small, so that a campaign sees many snapshots, and topics that are trimmed behind them.
_SNAPSHOT_EVERY = 150
_TRIM_S = 1.0
_TELL_S = 1.0
#: How often, of once a second, the load is adjusted. No snapshot is made before as many seconds have passed
#: after an adjustment as publications may ask back for; where events bring their order they ask for none.
_SHARES = {"given": 0.4, "arrival": 0.1}


def session(settings: Settings) -> SparkSession:
    if master := os.environ.get("PS2STREAM_MASTER"):
        # As many slots as roles: a driver that is paused keeps its executors, and the next one needs some.
        n = str(len(roles_of(settings)))
        conf = {**realtime_conf(settings, on_cluster=True), "spark.cores.max": n}
        return cluster_session("campaign", master, conf=conf)
    return local_session("campaign", memory="512m", conf=realtime_conf(settings, on_cluster=False))


def run(
    where: str, seed: int, topics: Topics, order: str, settings: Settings, *, is_exact: bool = True
) -> None:
    sample = one_batch(random_events(200, seed))
    options = RealtimeOptions(
        plan=lambda: first_plan(sample, settings),
        has_given_order=order == "given",
        is_exact=is_exact,
        make_controller=MakeRestless(seed, sample, _SHARES[order]),
        snapshot_every=_SNAPSHOT_EVERY,
        trim_s=_TRIM_S,
    )
    closed = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        closed.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    spark = session(settings)
    spark.sparkContext.setLogLevel("WARN")
    number, tell_at = 0, time.monotonic()
    try:
        with realtime_stream(spark, topics, f"{where}/state", settings, options) as stream:
            tell(started=True)
            while not closed.wait(0.05):
                stream.check()
                if time.monotonic() >= tell_at and len(stream.board.standings()) >= len(roles_of(settings)):
                    tell(batch=number, upto={})
                    number, tell_at = number + 1, time.monotonic() + _TELL_S
    finally:
        with contextlib.suppress(Exception):  # a JVM that was killed cannot be asked to end
            spark.stop()


def main() -> int:
    where, seed, servers, prefix, order, n_workers, n_dispatchers, partitioner, *more = sys.argv[1:]
    if "://" not in where:
        Path(where).mkdir(parents=True, exist_ok=True)
    try:
        settings = Settings(
            n_workers=int(n_workers), n_dispatchers=int(n_dispatchers), partitioner=partitioner
        )
        topics, is_exact = Topics(Kafka(servers), prefix), more != [AT_LEAST_ONCE]
        run(where, int(seed), topics, order, settings, is_exact=is_exact)
    except PS2StreamError as error:
        tell(ended=f"{type(error).__name__}: {error}")
        return FENCED if isinstance(error, FencedError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
