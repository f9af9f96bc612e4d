"""A disk that is soon full, where the machine lets us have one."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(directory: Path, size: str = "256k") -> Iterator[Path]:
    """Mount a small file system while the context lasts; skip the test where that is not permitted."""
    directory.mkdir(exist_ok=True)
    mount, umount = shutil.which("mount"), shutil.which("umount")
    command = [mount or "mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
    if sys.platform != "linux" or not mount or not umount:
        pytest.skip("a small file system can be mounted on Linux only")
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        yield directory
    finally:
        # Lazily: what a failed test still maps must not keep the mount.
        subprocess.run([umount, "--lazy", str(directory)], check=True)
