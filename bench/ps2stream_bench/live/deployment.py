"""An engine in a process of its own, so that who sends and who measures does not share its interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ps2stream.config import Settings
from ps2stream.kafka.topics import Topics
from ps2stream.partitioning.plan import Plan
from ps2stream_bench.live.broker import Broker
from ps2stream_bench.live.engine_driver import Asked

_END_S = 60.0


@dataclass(slots=True)
class Deployment:
    """A running engine: its topics, its process, and where its files are."""

    topics: Topics
    process: subprocess.Popen[str]
    home: Path

    def board(self) -> dict[str, Any]:
        """Return what the roles have counted so far; empty where an engine does not tell."""
        assert self.process.stdin is not None
        self.process.stdin.write("board\n")
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(_line(self.process))
        return found

    def check(self) -> None:
        if self.process.poll() is not None:
            raise RuntimeError(f"the engine has ended with {self.process.returncode}")


@contextlib.contextmanager
def running(
    engine: str, broker: Broker | None, home: Path, settings: Settings, plan: Plan
) -> Iterator[Deployment]:
    """Run an engine while the context lasts: on topics of its own, or without a broker on a journal."""
    home.mkdir(parents=True, exist_ok=True)
    servers = broker.servers if broker else ""
    asked = Asked(engine, servers, f"bench-{uuid.uuid4().hex[:8]}", home, settings, plan)
    if broker is not None:
        asked.topics.create(settings.n_dispatchers)
    (home / "asked.pickle").write_bytes(pickle.dumps(asked))
    with (home / "engine.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ps2stream_bench.live.engine_driver", str(home / "asked.pickle")],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        if (said := _line(process)) != "ready":
            raise RuntimeError(f"{engine} did not start: {said} {(home / 'engine.log').read_text()[-2000:]}")
        yield Deployment(asked.topics, process, home)
    finally:
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if broker is not None:
            with contextlib.suppress(Exception):
                asked.topics.delete()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if said.startswith("failed: "):
        raise RuntimeError(said)
    return said
