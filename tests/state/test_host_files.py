"""What lies on the disk of a host lies below one directory, each thing by itself."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from ps2stream.state.host_files import HostFiles


def test_nothing_is_made_before_it_is_needed_and_nothing_lies_elsewhere(tmp_path: Path) -> None:
    host = HostFiles(tmp_path / "host")
    paths = [host.checkpoint, host.spark_log, host.lock.path, host.spool(1), host.spool(2), host.spool(1, 3)]
    assert len(set(paths)) == len(paths)
    assert all(path.is_relative_to(tmp_path / "host") for path in paths)
    host.worker_home(3)
    assert list(tmp_path.iterdir()) == []
    with host.worker_home(3).locked(), host.worker_home(4).locked(), host.lock.held():
        assert {path.name for path in tmp_path.iterdir()} == {"host"}


def test_an_index_is_found_by_its_name_from_any_process_until_it_is_dropped(tmp_path: Path) -> None:
    host = HostFiles(tmp_path)
    for name in ("registry-1", "routing-1", "registry-2"):
        host.storage(name).create("column", np.int64, 3)[:] = len(name)
    with host.worker_home(0).locked():
        pass
    again = pickle.loads(pickle.dumps(host))
    assert again.storage("routing-1").open("column", np.int64, shared=False).tolist() == [9, 9, 9]
    index = tmp_path / "index"
    host.drop("registry-1")
    host.drop("registry-1")
    assert {path.name for path in index.iterdir()} == {"registry-2", "routing-1", "worker-000"}
    host.drop_all()
    assert {path.name for path in index.iterdir()} == {"worker-000"}


def test_files_of_jobs_elsewhere_are_apart_and_share_what_is_kept_of_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PS2STREAM_LOCAL_DIR", str(tmp_path))
    unopened = HostFiles.of("s3://bucket/one")
    places = [("s3://bucket/one", "1"), ("s3://bucket/one", "2"), ("s3://bucket/other", "1")]
    jobs = [HostFiles.of(location, job_id) for location, job_id in places]
    assert len({each.directory for each in (unopened, *jobs)}) == 4
    blobs = [each.blobs for each in jobs if each.blobs is not None]
    assert [each.directory for each in blobs] == [tmp_path / "blobs"] * 3
    assert len({each.part for each in blobs}) == 3
    assert unopened.blobs is None, "whose they are is not known yet"
    assert HostFiles(tmp_path).blobs is None, "a state on this host needs no copies"
    assert list(tmp_path.iterdir()) == []
