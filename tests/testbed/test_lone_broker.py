from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from testbed import lone_broker
from testbed.errors import BedError
from waiting import HANG_S


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind((lone_broker.ADDRESS, 0))
        return int(free.getsockname()[1])


def test_a_port_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with (
        socket.create_server((lone_broker.ADDRESS, 0)) as other,
        pytest.raises(BedError, match="choose another port"),
    ):
        lone_broker.up(other.getsockname()[1], None)


def test_a_broker_that_is_not_there_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], port: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # The number of a process that is none.
    (tmp_path / "ps2stream" / "kafka" / str(port)).mkdir(parents=True)
    (tmp_path / "ps2stream" / "kafka" / str(port) / "pid").write_text(str(os.getpid()))
    lone_broker.down(port)
    assert "no broker of ours" in capsys.readouterr().err


@pytest.mark.slow
def test_records_are_there_when_the_broker_comes_again_with_its_data(tmp_path: Path, port: int) -> None:
    data = tmp_path / "data"
    try:
        named = lone_broker.up(port, data, is_brief=True)
        assert named == lone_broker.up(port, data, is_brief=True)
        servers = named.removeprefix("PS2STREAM_KAFKA=")
        producer = Producer({"bootstrap.servers": servers})
        producer.produce("words", b"fire")
        assert producer.flush(HANG_S) == 0
        lone_broker.down(port)
        lone_broker.up(port, data, is_brief=True)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "a", "auto.offset.reset": "earliest"})
        consumer.subscribe(["words"])
        [message] = consumer.consume(1, HANG_S)
        assert message.value() == b"fire"
        consumer.close()
    finally:
        lone_broker.down(port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((lone_broker.ADDRESS, port)).close()
