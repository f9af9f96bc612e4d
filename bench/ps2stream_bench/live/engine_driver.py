"""Run an engine on topics until the standard input ends.

    python -m ps2stream_bench.live.engine_driver ASKED.pickle

Prints ``ready``; a line ``board`` is answered with what the roles have counted, as JSON.
"""

from __future__ import annotations

import contextlib
import functools
import json
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ps2stream.config import Settings
from ps2stream.engines.spark.jvm import end_jvm
from ps2stream.engines.spark.session import own_session
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.topics import Topics
from ps2stream.partitioning.plan import Plan


@dataclass(frozen=True, slots=True)
class Asked:
    """Which engine is to run, on whose topics, and where its files are."""

    engine: str
    servers: str
    prefix: str
    home: Path
    settings: Settings
    plan: Plan

    @property
    def topics(self) -> Topics:
        return Topics(Kafka(self.servers), self.prefix)


class Running:
    """An engine that runs."""

    def __init__(self, check: Callable[[], None], board: Callable[[], dict[str, Any]]) -> None:
        self.check, self.board = check, board


@contextlib.contextmanager
def _realtime(asked: Asked, *, is_exact: bool = True) -> Iterator[Running]:
    from ps2stream.engines.spark.realtime import RealtimeOptions, realtime_conf, realtime_stream

    options = RealtimeOptions(lambda: asked.plan, is_exact=is_exact)
    conf = realtime_conf(asked.settings, on_cluster=False)
    with (
        own_session("ps2stream-bench", log=asked.home / "spark.log", conf=conf) as spark,
        realtime_stream(spark, asked.topics, asked.home / "state", asked.settings, options) as stream,
    ):
        yield Running(stream.check, stream.board.snapshot)


@contextlib.contextmanager
def _microbatch(asked: Asked) -> Iterator[Running]:
    from ps2stream.engines.spark.kafka_stream import kafka_stream
    from ps2stream.engines.stream_start import StreamOptions

    options = StreamOptions(plan=asked.plan)
    with (
        own_session("ps2stream-bench", log=asked.home / "spark.log") as spark,
        kafka_stream(spark, asked.topics, asked.home / "state", asked.settings, options=options) as stream,
    ):
        yield Running(stream.check, dict)


@contextlib.contextmanager
def _inline(asked: Asked) -> Iterator[Running]:
    """Run the engine that needs no broker, on a journal; its board has the end of every batch."""
    from ps2stream.engines.embedded import embedded_stream
    from ps2stream.engines.stream_start import StreamOptions
    from ps2stream.journal import Journal
    from ps2stream.state.home_layout import HomeLayout

    home, ends = HomeLayout(asked.home), list[tuple[float, int]]()

    def on_batch(done: Any) -> None:
        ends.append((time.perf_counter(), max(source.last_seq for source in done.sources)))

    def board() -> dict[str, Any]:
        told = list(ends)
        del ends[: len(told) - 1]
        return {"batches": told}

    Journal.open(home.journal, create=True).close()
    options = StreamOptions(plan=asked.plan)
    with embedded_stream(
        home.journal, home.state, home.out, asked.settings, on_batch=on_batch, options=options
    ) as stream:
        yield Running(stream.check, board)


#: One that is added here can be named in a figure. All but inline run on topics.
ENGINES: dict[str, Callable[[Asked], contextlib.AbstractContextManager[Running]]] = {
    "realtime": _realtime,
    "realtime, at least once": functools.partial(_realtime, is_exact=False),
    "microbatch": _microbatch,
    "inline": _inline,
}


def main() -> None:
    asked: Asked = pickle.loads(Path(sys.argv[1]).read_bytes())
    asked.home.mkdir(parents=True, exist_ok=True)
    try:
        with ENGINES[asked.engine](asked) as running:
            print("ready", flush=True)
            ended = threading.Event()
            threading.Thread(target=_watch, args=(running, ended), daemon=True).start()
            for line in sys.stdin:
                if line.strip() == "board":
                    print(json.dumps(running.board()), flush=True)
            ended.set()
    finally:
        end_jvm()


def _watch(running: Running, ended: threading.Event) -> None:
    """Say what ended the engine; whoever waits for deliveries would wait for ever."""
    while not ended.wait(1.0):
        try:
            running.check()
        except Exception as error:
            print(f"failed: {error}", flush=True)
            return


if __name__ == "__main__":
    main()
