"""A process that delivers parts of batches, and may be killed on the way.

Its arguments are servers, prefix, first and last batch, and a step such as ``before commit_transaction``:
there it kills itself, in the first batch. It says a line for each batch that is delivered.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

from confluent_kafka import Producer

from ps2stream.kafka import client
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.delivering import deliver
from ps2stream.kafka.sending import Outgoing
from ps2stream.kafka.topics import Topics
from waiting import HANG_S

STEPS = (
    "init_transactions",
    "begin_transaction",
    "produce",
    "send_offsets_to_transaction",
    "commit_transaction",
)
PART = "matches-000"
N_RECORDS = 30


def records_of(topics: Topics, batch_id: int) -> list[Outgoing]:
    """Return the part of a batch, the same for whoever delivers it."""
    return [Outgoing(topics.matches, n % 3, b"%d-%d" % (batch_id, n)) for n in range(N_RECORDS)]


def start(topics: Topics, first: int, last: int, step: str = "") -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, topics.kafka.servers, topics.prefix, str(first), str(last), step]
    # What pytest has added to the path is not inherited.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


def run(topics: Topics, first: int, last: int, step: str = "") -> int:
    with start(topics, first, last, step) as process:
        return process.wait(HANG_S)


def _killing(step: str) -> type[Producer]:
    """Return a producer that kills its process before or after a step."""
    when, _, name = step.partition(" ")
    kind = Producer

    def stepped(self: Any, *args: Any) -> Any:
        if when == "before":
            kind.flush(self, 10)
            os.kill(os.getpid(), signal.SIGKILL)
        done = getattr(kind, name)(self, *args)
        if name == "produce":
            kind.flush(self, 10)
        os.kill(os.getpid(), signal.SIGKILL)
        return done

    return type("Killing", (kind,), {name: stepped})


def main(servers: str, prefix: str, first: str, last: str, step: str) -> None:
    if step:
        vars(client)["Producer"] = _killing(step)
    topics = Topics(Kafka(servers), prefix)
    for batch_id in range(int(first), int(last) + 1):
        deliver(topics, PART, batch_id, records_of(topics, batch_id))
        print(batch_id, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
