"""Pack what executors need to import into an archive that Spark sends to them: what ``./dev pack`` calls.

The locked packages, this checkout's own, and its kernels, compiled for this machine's kind of processor.
PySpark is not among them: executors have it from Spark itself.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_LOCK = _ROOT / "requirements-cluster.lock"
_OF_SPARK = ("py4j", "pyspark")
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--upgrade")
#: Machine code hardly gets smaller by more effort, which takes minutes.
_EFFORT = 1


def without_spark(lock: str) -> str:
    """Leave out what Spark brings: entries of a lock begin at the margin."""
    entries = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)
    return "".join(entry for entry in entries if entry.partition("==")[0] not in _OF_SPARK)


def install(packages: Path, scratch: Path) -> None:
    """Install the locked packages and this checkout into a directory."""
    lock = scratch / "lock"
    lock.write_text(without_spark(_LOCK.read_text(encoding="utf-8")), encoding="utf-8")
    pip = [sys.executable, *_PIP, "--target", str(packages)]
    subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", str(_ROOT)], check=True)


def compile_kernels(packages: Path) -> None:
    """Compile the kernels of installed packages into them; nothing else is imported: the rest is complete."""
    kernels = packages / "ps2stream" / "kernels" / "compiled"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHON"))}
    environment = {**kept, "PYTHONPATH": str(packages), "NUMBA_CACHE_DIR": str(kernels)}
    # Without the packages of this Python's own.
    command = [sys.executable, "-S", "-m", "ps2stream.engines.kernel_warmup"]
    subprocess.run(command, env=environment, cwd=packages, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev pack", description=__doc__)
    parser.add_argument("archive", type=Path, metavar="OUT.tar.gz")
    parser.add_argument("--no-kernels", action="store_true", help="let each host compile for itself")
    given = parser.parse_args()
    if not given.archive.name.endswith(".tar.gz"):
        parser.error(f"Spark unpacks it by its name, which must end with .tar.gz; got {given.archive}")
    with tempfile.TemporaryDirectory() as scratch:
        packages = Path(scratch, "packages")
        install(packages, Path(scratch))
        if not given.no_kernels:
            compile_kernels(packages)
        part = given.archive.with_name(f".{given.archive.name}.part")
        with tarfile.open(part, "w:gz", compresslevel=_EFFORT) as archive:
            archive.add(packages, arcname=".")
        part.replace(given.archive)


if __name__ == "__main__":
    main()
