from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path

from testbed.broker import answers, broker_command, properties


def test_a_broker_is_its_own_controller_and_keeps_its_data_where_it_is_told() -> None:
    lines = properties("198.18.1.3", 9092, 9093, Path("/bed/kafka")).splitlines()
    assert "listeners=PLAINTEXT://198.18.1.3:9092,CONTROLLER://198.18.1.3:9093" in lines
    assert "controller.quorum.voters=1@198.18.1.3:9093" in lines
    assert "log.dirs=/bed/kafka" in lines


def test_a_broker_formats_its_disk_before_it_starts_and_paths_may_have_spaces() -> None:
    *_, script = broker_command([Path("/a cache/x.jar")], Path("/a bed/kafka.properties"))
    assert script.index("StorageTool format --ignore-formatted") < script.index("&& exec")
    assert script.count("'/a cache/x.jar'") == script.count("'/a bed/kafka.properties'") == 2


def test_a_broker_is_ready_when_it_answers_not_when_it_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        asked: list[bytes] = []

        def answer() -> None:
            for reply in (b"", struct.pack(">ii", 4, 1)):
                connection, _ = server.accept()
                with connection:
                    asked.append(connection.recv(64))
                    connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        assert [answers("127.0.0.1", port), answers("127.0.0.1", port)] == [False, True]
        thread.join()
    assert struct.unpack(">ihhih", asked[1]) == (10, 18, 0, 1, -1)
    assert not answers("127.0.0.1", port)
