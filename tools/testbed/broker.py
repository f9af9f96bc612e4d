"""A Kafka broker of one node, which is its own controller (KRaft)."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

from testbed.requirements import java

HEAP = "512m"
#: Options of a JVM that lives for seconds or few minutes: compiling better would not pay.
_BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# Anything of this form will do: one broker never meets another.
_CLUSTER_ID = "cHMyc3RyZWFtLXRlc3RiZQ"
_API_VERSIONS = 18

_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    # One broker can hold one replica.
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Partitions of internal topics are files and memory for nobody.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    # The first member of a group need not wait for a second.
    "group.initial.rebalance.delay.ms": "0",
    "num.partitions": "1",
    # Packets of publications are larger than single records.
    "message.max.bytes": "10485760",
    "replica.fetch.max.bytes": "10485760",
}


def properties(address: str, port: int, controller_port: int, data: Path) -> str:
    """Write the configuration of a broker."""
    settings = {
        **_SETTINGS,
        "listeners": f"PLAINTEXT://{address}:{port},CONTROLLER://{address}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{address}:{port}",
        "controller.quorum.voters": f"1@{address}:{controller_port}",
        "log.dirs": str(data),
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def broker_command(jars: Sequence[Path], configuration: Path, *, is_brief: bool = False) -> list[str]:
    """Return the command that formats the broker's disk, unless it is formatted, and then is the broker."""
    classpath = os.pathsep.join(map(str, jars))
    tool = [java(), "-Xmx128m", *_BRIEF, "-cp", classpath]
    tool += ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
    tool += ["--cluster-id", _CLUSTER_ID, "--config", str(configuration)]
    options = _BRIEF if is_brief else ["-XX:+UseG1GC"]
    server = [java(), f"-Xmx{HEAP}", *options, "-cp", classpath, "kafka.Kafka", str(configuration)]
    return ["/bin/sh", "-c", f"{shlex.join(tool)} && exec {shlex.join(server)}"]


def answers(address: str, port: int) -> bool:
    """Say whether a broker handles requests: it accepts connections before it does."""
    request = struct.pack(">hhih", _API_VERSIONS, 0, 1, -1)
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=1.0) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        return len(connection.recv(8)) == 8
    return False
