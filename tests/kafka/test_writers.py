"""The files of a broker say who wrote a record, and a role is the same whoever runs it."""

from __future__ import annotations

import json
from pathlib import Path

from kafka.writers import written
from ps2stream.kafka.places import Place, RoleName, Send
from ps2stream.kafka.role_topics import RoleTopics
from ps2stream.kafka.role_wire import KafkaWire
from ps2stream.kafka.topics import Topics
from testbed import lone_broker


def test_records_of_a_role_have_one_writer_though_another_process_runs_it(topics: Topics) -> None:
    role_topics = RoleTopics(topics, n_workers=2)
    role_topics.create(n_dispatchers=1)
    for number in (0, 1, 0, 1, 1):
        wire = KafkaWire(role_topics, RoleName("worker", number))
        row = json.dumps({"of": number}).encode()
        for _ in range(2):  # by one of its clients and by the other
            wire.commit([Send(Place("matches"), row), Send(Place("matches", 1), row)], b"")
        wire.close()
    port = int(topics.kafka.servers.rpartition(":")[2])
    found = written(topics, topics.matches, data_of(port))
    writers = {number: {who for row, who in found if row["of"] == number} for number in (0, 1)}
    assert len(found) == 20
    assert len(writers[0]) == len(writers[1]) == 1
    assert writers[0] != writers[1]


def data_of(port: int) -> Path:
    return lone_broker._directory(port) / "data"
