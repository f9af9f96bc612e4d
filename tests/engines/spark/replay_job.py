"""A replay through resident roles in a process of its own, where Spark has a slot for each of them.

    python replay_job.py EVENTS DIRECTORY SERVERS PARTITIONER N_WORKERS N_DISPATCHERS

Events are poured part by part, each when roles are idle: they report between two parts, and a controller that
adjusts for no reason is asked. Writes the output and the report of the replay below DIRECTORY.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest import mock

import pyarrow as pa

from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.engines.spark import realtime_replay
from ps2stream.engines.spark.realtime import RealtimeOptions, realtime_conf
from ps2stream.engines.spark.realtime_replay import replay_realtime, replay_topics
from ps2stream.engines.spark.session import local_session
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.topics import Topics
from ps2stream.resident.idleness import RolesIdleness
from ps2stream.sources.event_log import EventLog
from resident.restless import MakeRestless

_N_PARTS = 12
_SEED = 7
_REPORT_S = 0.2
_SNAPSHOT_EVERY = 150


class LogInParts(EventLog):
    """An event log that is poured as fast as roles take it, and no faster; ``topics``: where it goes."""

    topics: RoleTopics | None = None

    def batches(self, size: int) -> Iterator[pa.RecordBatch]:
        if self.topics is None:  # for the sample of the first plan
            yield from super().batches(size)
            return
        for batch in super().batches(-(-self.n_events // _N_PARTS)):
            yield batch
            idleness = RolesIdleness(self.topics)
            while not idleness.is_idle():
                time.sleep(_REPORT_S)
            time.sleep(2 * _REPORT_S)  # the reports of all this come to the registrar


def replay(events: LogInParts, directory: Path, topics: Topics, settings: Settings) -> dict[str, object]:
    sample = one_batch(pa.Table.from_batches(events.batches(200)).slice(0, 200))
    restless = partial(
        RealtimeOptions,
        make_controller=MakeRestless(_SEED, sample),
        report_s=_REPORT_S,
        snapshot_every=_SNAPSHOT_EVERY,
        trim_s=_REPORT_S,
    )
    events.topics = RoleTopics(topics, settings.n_workers)
    spark = local_session("replay", memory="512m", conf=realtime_conf(settings, on_cluster=False))
    try:
        places = topics, directory / "state", directory / "out"
        with mock.patch.object(realtime_replay, "RealtimeOptions", restless):
            replayed = replay_realtime(spark, events, places, settings, lambda tally: None)
    finally:
        spark.stop()
    return replayed.tally.report(replayed.wall_s)


def main() -> None:
    log, where, servers, partitioner, n_workers, n_dispatchers = sys.argv[1:]
    settings = Settings(n_workers=int(n_workers), n_dispatchers=int(n_dispatchers), partitioner=partitioner)
    with replay_topics(Kafka(servers), settings) as topics:
        report = replay(LogInParts(Path(log)), Path(where), topics, settings)
    (Path(where) / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
