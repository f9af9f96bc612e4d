"""What a driver finds out about the cluster it runs on; `test_cluster.py` runs it there and asserts the rest.

Prints one JSON object. Everything is looked at from tasks of Spark, where the product's own code will be.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import boto3
from confluent_kafka import Consumer
from pyspark import SparkContext
from pyspark.sql import SparkSession

from clusters import cluster_command

_TIMEOUT_S = 60.0


def main() -> None:
    handle = json.loads(Path(os.environ["PS2STREAM_CLUSTER"]).read_text(encoding="utf-8"))
    home = Path.home() / f".{handle['name']}-of-the-driver"
    home.touch()
    spark = SparkSession.builder.master(os.environ["PS2STREAM_MASTER"]).config("spark.ui.enabled", "false")
    # Tasks are counted by host: all hosts have to be there before the first is handed out.
    context = spark.config("spark.scheduler.minRegisteredResourcesRatio", "1.0").getOrCreate().sparkContext
    try:
        n = len(handle["hosts"])
        found = {
            "handle": handle,
            "environment": dict(os.environ),
            "first": everywhere(context, n, lambda: look(str(home), write=True)),
            "second": everywhere(context, n, lambda: look(str(home), write=False)),
            "stored": store_from_a_task(context),
            "consumed": kafka_from_a_task(context),
            "after_faults": faults(),
            "third": everywhere(context, n, lambda: look(str(home), write=False)),
        }
    finally:
        context.stop()
        home.unlink()
    print(json.dumps(found))


def everywhere(context: SparkContext, n_hosts: int, look: Callable[[], Any]) -> list[Any]:
    """Call a function on all hosts at once: each has two slots, and a barrier keeps all tasks waiting."""

    def task(_: Iterable[int]) -> Iterator[Any]:
        from pyspark import BarrierTaskContext

        BarrierTaskContext.get().barrier()
        yield look()

    return list(context.parallelize(range(2 * n_hosts), 2 * n_hosts).barrier().mapPartitions(task).collect())


def look(home_of_driver: str, *, write: bool) -> dict[str, Any]:
    """Report what a process on a host sees of its own and of others' disks."""
    name = socket.gethostname()
    if write:
        Path(f"/tmp/of-{name}").touch()
    read_only = False
    try:
        Path(__file__).with_name("written-by-a-host").touch()
    except OSError:
        read_only = True
    return {
        "host": name,
        "files": sorted(path.name for path in Path("/tmp").glob("of-*")),
        "sees_home_of_driver": os.path.exists(home_of_driver),
        "checkout_is_read_only": read_only,
        "kernels": len(list((Path.home() / ".cache" / "ps2stream" / "kernels").glob("*"))),
    }


def store_from_a_task(context: SparkContext) -> list[str]:
    """Put an object in one task and read it here; the server is killed and started between."""

    def put(numbers: Iterable[int]) -> Iterator[str]:
        for number in numbers:
            bucket, _, prefix = os.environ["PS2STREAM_STORE"].removeprefix("s3://").partition("/")
            boto3.client("s3").put_object(Bucket=bucket, Key=f"{prefix}/{number}", Body=b"%d" % number)
            yield socket.gethostname()

    context.parallelize(range(4), 4).mapPartitions(put).collect()
    command("kill", "store")
    command("start", "store")
    bucket, _, prefix = os.environ["PS2STREAM_STORE"].removeprefix("s3://").partition("/")
    client = boto3.client("s3")
    return [client.get_object(Bucket=bucket, Key=f"{prefix}/{i}")["Body"].read().decode() for i in range(4)]


def kafka_from_a_task(context: SparkContext) -> list[str]:
    """Produce in tasks and consume here; the broker is killed and started between."""
    servers = os.environ["PS2STREAM_KAFKA"]

    def produce(numbers: Iterable[int]) -> Iterator[int]:
        from confluent_kafka import Producer  # a class that cannot be pickled, not even by its name

        producer = Producer({"bootstrap.servers": servers})
        for number in numbers:
            producer.produce("numbers", str(number).encode())
        yield producer.flush(_TIMEOUT_S)

    left = context.parallelize(range(4), 4).mapPartitions(produce).collect()
    command("kill", "kafka")
    command("start", "kafka")
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "inside", "auto.offset.reset": "earliest"})
    consumer.subscribe(["numbers"])
    consumed: list[str] = []
    while len(consumed) < 4 - sum(left):
        for message in consumer.consume(4, _TIMEOUT_S):
            value = message.value()
            assert message.error() is None, message.error()
            assert isinstance(value, bytes)
            consumed.append(value.decode())
    consumer.close()
    return sorted(consumed)


def faults() -> dict[str, Any]:
    """Kill some processes of a host, cut it off, kill it, and start it again, with and without its disk."""
    for kind in ("python", "executor"):
        command("kill", "h2", "--only", kind)
    before = on_host("h1", "ls", "/tmp")
    cutting = subprocess.Popen(cluster_command("cut", "h1", "3"))
    while not is_down("h1"):
        assert cutting.poll() is None
    cut = cutting.wait()
    command("kill", "h1")
    second = subprocess.run(cluster_command("kill", "h1")).returncode
    command("start", "h1")
    kept = on_host("h1", "ls", "/tmp")
    command("kill", "h1")
    command("start", "h1", "--empty")
    return {
        "cut_ended_with": cut,
        "is_down_after_cut": is_down("h1"),
        "kill_of_the_dead": second,
        "disk_is_kept": "of-h1" in before and "of-h1" in kept,
        "disk_is_empty": "of-h1" not in on_host("h1", "ls", "/tmp"),
        "start_of_what_runs": subprocess.run(
            cluster_command("start", "h2"), stderr=subprocess.DEVNULL
        ).returncode,
    }


def command(action: str, *arguments: str) -> None:
    subprocess.run(cluster_command(action, *arguments), check=True, stdout=sys.stderr)


def on_host(host: str, *command: str) -> str:
    done = subprocess.run(
        cluster_command("exec", host, "--", *command), check=True, capture_output=True, text=True
    )
    return done.stdout


def is_down(host: str) -> bool:
    veth = member(host)["veth"]
    return Path(f"/sys/class/net/{veth}/operstate").read_text(encoding="ascii").strip() == "down"


def member(host: str) -> dict[str, Any]:
    handle = json.loads(Path(os.environ["PS2STREAM_CLUSTER"]).read_text(encoding="utf-8"))
    found: dict[str, Any] = handle["hosts"][host]
    return found


if __name__ == "__main__":
    main()
