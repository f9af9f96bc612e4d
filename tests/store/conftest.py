"""Every kind of store, and those that only stores of this package are about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.host_cache import CachedStore, HostCache
from ps2stream.store.memory import MemoryStore
from s3_server import S3Server


@pytest.fixture(params=["directory", "memory", "s3", "cached", "cached in part"])
def store(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Run a test on every kind of store."""
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        return server.store()
    if request.param == "directory":
        return DirectoryStore(tmp_path / "store")
    if request.param == "memory":
        return MemoryStore()
    # One host by itself sees its own changes even of keys that it should not change.
    fixed = re.compile(".*" if request.param == "cached" else r"(.*/)?[ac]")
    return CachedStore(MemoryStore(), HostCache(tmp_path_factory.mktemp("cache"), "part"), fixed)
