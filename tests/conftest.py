"""What many tests share: one Spark session for all that need one, and the engines behind one face.

In a parallel run (``./dev test``) all tests of a session are in one process, and first: to start one takes
longer than most tests. The others are handed out by file: what the tests of a file share is made once.
"""

from __future__ import annotations

import functools
import os
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from laws.engines import Engine, Inline, JobHome, OnJournal
from ps2stream.engines.spark.session import local_session
from ps2stream.kafka.client import Kafka
from ps2stream.kafka.topics import Topics
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.memory import MemoryStore

if TYPE_CHECKING:
    from s3_server import S3Server

_ROOT = Path(__file__).parent.parent
_SPARK = "spark"

# How long an example takes says how busy the machine is.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")

# A script that starts the suite in the background has Ctrl-C ignored, and all processes of ours would inherit
# that, as they should: `nohup ps2stream run &` goes on. Tests that send the signal mean a usual terminal.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start Spark when the first test asks for it: that takes seconds, and most tests do without."""
    with pytest.MonkeyPatch.context() as patch:
        # Nothing of Spark's own (warehouse, shuffle files) may land in the checkout.
        patch.setenv("SPARK_LOCAL_DIRS", str(tmp_path_factory.mktemp("spark")))
        session = local_session("ps2stream tests", cores=2, memory="1g")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """Start an S3 server when the first test asks for it: to import one takes a second."""
    from s3_server import S3Server

    server = S3Server()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Start a broker when the first test asks for it; all processes of a run share one."""
    from brokers import shared_broker

    base = tmp_path_factory.getbasetemp()
    with shared_broker(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) as servers:
        yield Kafka(servers)


@pytest.fixture
def topics(kafka: Kafka) -> Iterator[Topics]:
    """Make the topics of a deployment of its own for a test."""
    made = Topics(kafka, f"test-{uuid.uuid4().hex}")
    made.create(3)
    yield made
    made.delete()


@pytest.fixture(params=["directory", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Run a test on every kind of store."""
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        return server.store()
    return DirectoryStore(tmp_path / "store") if request.param == "directory" else MemoryStore()


@pytest.fixture(params=["inline", "embedded", "microbatch"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Run a test on every engine."""
    if request.param == "inline":
        return Inline()
    return OnJournal(request.getfixturevalue("spark") if request.param == "microbatch" else None)


@pytest.fixture
def job_home(tmp_path: Path) -> JobHome:
    return JobHome(tmp_path)


class SparkApartAndTheRestByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run one process more than there are cores: tests often wait for what they have started."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return 1 + (len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    return SparkApartAndTheRestByFile(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # alone, a process keeps to the order of the files
        items.sort(key=lambda item: _rank(_scope(item.nodeid)))


def _rank(scope: str) -> int:
    """Put first what takes long, so that in the end no process waits for another."""
    return 0 if scope == _SPARK else 1 if _starts_processes(scope) else 2


def _scope(nodeid: str) -> str:
    """Say which tests go to the same process.

    By names only: whoever hands out tests knows nothing else of them. Marks would do it (xdist_group), but
    pytest-xdist 3.8 loses them with pytest 9.2.
    """
    file, _, test = nodeid.partition("::")
    name, _, case = test.partition("[")
    asked = _parameters(file).get(name, "")
    is_on_spark = "Spark" in case or "microbatch" in case
    # A test that starts a program with a session of its own asks for none, and goes to any process.
    needs_session = "SparkSession" in asked or (is_on_spark and re.search("engine: Engine|peer: Peer", asked))
    return _SPARK if needs_session else file


@functools.cache
def _parameters(file: str) -> dict[str, str]:
    return dict(re.findall(r"^def (\w+)\((.*?)\) ->", _text(file), re.DOTALL | re.MULTILINE))


@functools.cache
def _starts_processes(file: str) -> bool:
    return any(word in _text(file) for word in ("subprocess", "topics: Topics", "kafka: Kafka"))


@functools.cache
def _text(file: str) -> str:
    return (_ROOT / file).read_text(encoding="utf-8")
