"""What the command of a bed, and the processes on its hosts, find in their environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from testbed import spark
from testbed.bed import HANDLE, Bed
from testbed.processes import MARK
from testbed.requirements import java, system_path

_ROOT = Path(__file__).parent.parent.parent
#: The interpreter that the virtual environment was made with.
_BASE_PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")

# The S3 server asks for some key and takes any.
_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testbed",
    "AWS_SECRET_ACCESS_KEY": "testbed",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}
# They would lead to places outside of the bed, or take precedence over what is set here.
_MISLEADING = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_CONFIG_FILE", "SPARK_CONF_DIR")
_TO_HOSTS = ("LANG", "LC_ALL", "PYTHONPATH", "JAVA_HOME", "TZ")


def services(bed: Bed) -> dict[str, str]:
    """Name the services of a bed, in the words of PS2Stream and of the ecosystem."""
    named = {"PS2STREAM_MASTER": bed.master_url, "PS2STREAM_STORE": bed.store_url}
    if bed.kafka is not None:
        named["PS2STREAM_KAFKA"] = bed.kafka
    return {**named, **_CREDENTIALS, "AWS_ENDPOINT_URL": bed.store_endpoint}


def of_command(bed: Bed) -> dict[str, str]:
    """Return the environment of the command: the driver of Spark, and the one who may make faults."""
    kept = {
        name: value for name, value in os.environ.items() if name not in (*_MISLEADING, "PS2STREAM_KAFKA")
    }
    around = ",".join(member.address for member in bed.layout.members)
    for name in ("NO_PROXY", "no_proxy"):
        kept[name] = ",".join(part for part in (os.environ.get(name), around) if part)
    return {
        **kept,
        **services(bed),
        **spark.spark_environment(bed.layout.driver_address),
        "PATH": command_path(),
        "PYSPARK_PYTHON": bed.host_environment["PYSPARK_PYTHON"],
        HANDLE: str(bed.description),
        MARK: bed.name,
    }


def command_path() -> str:
    """Put the project's environment first."""
    return os.pathsep.join([str(Path(sys.executable).parent), system_path()])


def of_hosts(outside: Mapping[str, str], *, bare: bool = False) -> dict[str, str]:
    """Return what the environment on all hosts has in common, apart from the services."""
    kept = {name: outside[name] for name in _TO_HOSTS if name in outside}
    if bare:
        kept.pop("PYTHONPATH", None)
    python = _BASE_PYTHON if bare else Path(sys.executable)
    home = str(Path.home())
    return {
        **kept,
        "HOME": home,
        "USER": "root",
        "PATH": os.pathsep.join([str(python.parent), system_path()]),
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_DIRS": "/var/spark/local",
    }


def visible(shared: Iterable[Path] = (), *, bare: bool = False) -> list[Path]:
    """List what hosts can read of this machine, apart from the system.

    Bare hosts have Python, Java and Spark, and nothing of the checkout or the virtual environment.
    """
    needed = [Path(sys.base_prefix), Path(java()).resolve().parent.parent, *shared]
    if bare:
        return [*needed, spark.spark_home()]
    return [*needed, _ROOT, Path(sys.prefix), *(Path(entry) for entry in sys.path if entry)]
