"""What the cases of a run share is there when it is needed, and gone afterwards."""

from __future__ import annotations

import signal

import pytest

from ps2stream.engines.spark import session
from ps2stream_bench.figure import Context


class FakeSession:
    stopped = False

    def stop(self) -> None:
        self.stopped = True


def test_ctrl_c_still_ends_a_run_once_spark_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, before = FakeSession(), signal.getsignal(signal.SIGINT)

    def start(*arguments: object, **options: object) -> FakeSession:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # PySpark puts a handler of its own
        return fake

    monkeypatch.setattr(session, "local_session", start)
    monkeypatch.setattr(session, "warm_up", lambda started: None)
    context = Context(1)
    try:
        assert id(context.spark()) == id(fake)
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.signal(signal.SIGINT, before)
        context.close()
    assert fake.stopped
    assert not context.scratch.exists()


def test_a_session_of_somebody_else_is_used_and_not_stopped() -> None:
    fake, context = FakeSession(), Context(1)
    context.use_spark(fake)  # type: ignore[arg-type]
    assert id(context.spark()) == id(fake)
    context.close()
    assert not fake.stopped


def test_a_corpus_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(1)
    first = context.corpus("uk", 300)
    assert context.corpus("uk", 300) is first
    assert context.corpus("us", 300) is not first
    context.close()
