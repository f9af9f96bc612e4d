"""Commands and environment of Spark's standalone cluster, from the package of PyPI."""

from __future__ import annotations

import importlib.util
import json
import os
import urllib.error
import urllib.request
from pathlib import Path

from testbed.errors import MissingRequirementError
from testbed.requirements import java

PORT = 7077
_UI_PORT = 8080
_HEAP = "256m"
_JVM = [f"-Xmx{_HEAP}", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]

_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def spark_home() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise MissingRequirementError("PySpark is needed in the environment of the test bed")
    return Path(found.origin).parent


def spark_environment(address: str) -> dict[str, str]:
    """Name the address that a process of Spark is reached at; else it asks the name service."""
    return {
        "SPARK_HOME": str(spark_home()),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": address,
        "SPARK_LOCAL_HOSTNAME": address,
        "SPARK_PUBLIC_DNS": address,
    }


def master_command(address: str, recovery: Path) -> list[str]:
    """Return the command of the master; one that is started again knows its workers and applications."""
    settings = [
        "-Dspark.deploy.recoveryMode=FILESYSTEM",
        f"-Dspark.deploy.recoveryDirectory={recovery}",
        # An application whose executors are killed all the time is what tests are about.
        "-Dspark.deploy.maxExecutorRetries=-1",
    ]
    where = ["--host", address, "--port", str(PORT), "--webui-port", str(_UI_PORT)]
    return [*_java(settings), "org.apache.spark.deploy.master.Master", *where]


def worker_command(address: str, master_address: str, *, cores: int, memory: str) -> list[str]:
    where = ["--host", address, "--webui-port", "8081", "--work-dir", "/var/spark/work"]
    size = ["--cores", str(cores), "--memory", memory]
    worker = "org.apache.spark.deploy.worker.Worker"
    return [*_java([]), worker, *where, *size, f"spark://{master_address}:{PORT}"]


def live_workers(master_address: str) -> dict[str, str]:
    """Ask the master for the workers that it takes for alive: id and address.

    A worker that was started again has another id; the master needs a minute to give up the old one.
    """
    try:
        with _NO_PROXY.open(f"http://{master_address}:{_UI_PORT}/json/", timeout=5.0) as answer:
            state = json.load(answer)
    except (urllib.error.URLError, OSError, ValueError):
        return {}
    return {worker["id"]: worker["host"] for worker in state["workers"] if worker["state"] == "ALIVE"}


def _java(settings: list[str]) -> list[str]:
    return [java(), *_JVM, *settings, "-cp", os.path.join(spark_home(), "jars", "*")]
