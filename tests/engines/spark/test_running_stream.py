"""A stream that starts again: by itself after a death, never after an error; queries are stand-ins here."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyspark.errors import PySparkException

from engines.spark.test_failures import OWN, READER_KILLED, READER_LATE
from ps2stream.engines.durable_job import BatchDone
from ps2stream.engines.spark.running_stream import MOST_RESTARTS, RunningStream, running
from ps2stream.errors import EngineError, FencedError, StateError

DONE = BatchDone(0, (), (), 3, 1, 7, 0.25, 0.5)


class Query:
    """A query that has failed with a report, or runs."""

    is_busy = False

    def __init__(self, failure: str | Exception | None = None, *, is_active: bool = False) -> None:
        self._failure, self.is_active = failure, is_active

    def failure(self) -> Exception | None:
        return PySparkException(self._failure) if isinstance(self._failure, str) else self._failure

    def process_all_available(self) -> bool:
        return self._failure is None

    def stop(self) -> None: ...


class Job:
    """What a stream needs of a job."""

    n_subscriptions = 5

    def __init__(self, sink: Any) -> None:
        self.sink = sink

    def tell_status(self) -> None: ...


class Starts:
    """Start one query after the other; a text stands for a start that fails with it."""

    def __init__(self, sink: Any, *queries: Query | str) -> None:
        self._job = Job(sink)
        self._queries = list(queries)
        self.n_started = 0
        self.tell: Any = None

    def __call__(self, on_done: Any) -> Any:
        query = self._queries[min(self.n_started, len(self._queries) - 1)]
        self.n_started += 1
        self.tell = on_done
        if isinstance(query, str):
            raise PySparkException(query)
        return self._job, query


def stream_of(starts: Starts) -> RunningStream:
    return RunningStream(starts, lambda done: None, first_pause_s=0.0)


RUNS = Query(is_active=True)


def test_a_death_starts_the_stream_again_and_is_told_in_one_line(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    starts = Starts(tmp_path, Query(READER_KILLED), RUNS)
    stream = stream_of(starts)
    stream.start()
    with caplog.at_level(logging.WARNING):
        stream.check()
        stream.check()
    assert starts.n_started == 2
    assert stream.n_subscriptions == 5
    assert [record.getMessage() for record in caplog.records] == [
        "the process that reads the source died; starting the stream again in 0 s"
    ]


def test_a_start_that_comes_too_late_is_tried_again(tmp_path: Any) -> None:
    starts = Starts(tmp_path, READER_LATE, READER_LATE, RUNS)
    stream_of(starts).start()
    assert starts.n_started == 3


def test_an_error_of_ours_is_raised_and_not_tried_again(tmp_path: Any) -> None:
    starts = Starts(tmp_path, Query(OWN))
    stream = stream_of(starts)
    stream.start()
    with pytest.raises(EngineError, match=r"^subscription log /h/state/log is damaged$"):
        stream.check()
    assert starts.n_started == 1


@pytest.mark.parametrize(
    ("failure", "error", "words"),
    [
        (StateError("plan 7 is missing"), StateError, "^plan 7 is missing$"),
        (ValueError("no such column"), EngineError, "^the stream failed: ValueError: no such column$"),
    ],
)
def test_an_error_of_the_driver_itself_is_raised_as_it_is(
    tmp_path: Any, failure: Exception, error: type[Exception], words: str
) -> None:
    stream = stream_of(Starts(tmp_path, Query(failure)))
    stream.start()
    with pytest.raises(error, match=words):
        stream.check()


def test_a_query_that_somebody_stopped_stays_stopped(tmp_path: Any) -> None:
    stream = stream_of(Starts(tmp_path, Query()))
    stream.start()
    with pytest.raises(StateError, match="the stream was stopped"):
        stream.wait()


def test_a_stream_that_does_not_get_on_is_given_up(tmp_path: Any) -> None:
    starts = Starts(tmp_path, Query(READER_KILLED))
    with pytest.raises(EngineError, match=rf"started again {MOST_RESTARTS} times"):
        stream_of(starts).process_all_available()
    assert starts.n_started == 1 + MOST_RESTARTS


def test_a_batch_that_gets_done_makes_earlier_deaths_forgotten(tmp_path: Any) -> None:
    starts = Starts(tmp_path, Query(READER_KILLED))
    seen: list[BatchDone] = []
    stream = RunningStream(starts, seen.append, first_pause_s=0.0)
    stream.start()
    for _ in range(3 * MOST_RESTARTS):
        stream.check()
        stream.check()
        starts.tell(DONE)
    assert starts.n_started == 1 + 3 * MOST_RESTARTS
    assert len(seen) == 3 * MOST_RESTARTS


def test_pauses_grow_from_death_to_death(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("ps2stream.engines.spark.running_stream.time.monotonic", lambda: now)
    starts = Starts(tmp_path, Query(READER_KILLED))
    stream = RunningStream(starts, lambda done: None, first_pause_s=1.0)
    stream.start()
    started_at: list[float] = []
    while len(started_at) < 4:
        n_started = starts.n_started
        stream.check()
        if starts.n_started > n_started:
            started_at.append(now)
        now += 0.5
    assert started_at == [1.0, 3.5, 8.0, 16.5]


def test_an_idle_stream_ends_when_its_state_is_another_drivers(tmp_path: Any) -> None:
    holders = iter([None, None, FencedError("another driver has taken over")])

    def check_holder() -> None:
        if error := next(holders):
            raise error

    stream = RunningStream(Starts(tmp_path, RUNS), lambda done: None, check_holder=check_holder)
    stream.start()
    with pytest.raises(FencedError, match="another driver has taken over"):
        stream.wait()
    assert next(holders, "nobody is asked twice") == "nobody is asked twice"


def test_an_interrupt_that_comes_when_the_query_has_just_started_stops_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sink:
        def finish(self) -> None: ...

    stopped: list[Query] = []
    monkeypatch.setattr(Query, "stop", lambda query: stopped.append(query))

    def interrupted(stream: RunningStream) -> None:
        stream._begin()
        raise KeyboardInterrupt

    monkeypatch.setattr(RunningStream, "start", interrupted)
    query = Query(is_active=True)
    with pytest.raises(KeyboardInterrupt), running(Starts(Sink(), query), lambda done: None):
        pass
    assert stopped == [query]
