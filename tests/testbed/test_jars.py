from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from testbed import jars
from testbed.errors import BedError
from testbed.jars import KAFKA_LOCK, cache_directory, ensure_jars, read_lock

_CONTENTS = b"a jar"
_PATH = "org/example/thing/1.2/thing-1.2.jar"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep a Maven repository in a directory."""
    directory = tmp_path / "repository"
    jar = directory / _PATH
    jar.parent.mkdir(parents=True)
    jar.write_bytes(_CONTENTS)
    monkeypatch.setenv("PS2STREAM_MAVEN_REPOSITORY", directory.as_uri())
    return directory


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "jars.lock"
    file.write_text(f"# why\n{hashlib.sha256(_CONTENTS).hexdigest()}  org.example:thing:1.2\n")
    return file


def no_word(_: str) -> None:
    pass


def test_a_missing_jar_is_downloaded_once(repository: Path, lock: Path, tmp_path: Path) -> None:
    words: list[str] = []
    for _ in range(2):
        assert [jar.read_bytes() for jar in ensure_jars(lock, tmp_path / "jars", words.append)] == [_CONTENTS]
    assert len(words) == 1
    assert os.listdir(tmp_path / "jars") == ["thing-1.2.jar"]


def test_a_jar_of_the_repository_that_is_not_the_locked_one_is_refused(
    repository: Path, lock: Path, tmp_path: Path
) -> None:
    (repository / _PATH).write_bytes(b"another jar")
    with pytest.raises(BedError, match=r"thing-1\.2\.jar is not what the lock names"):
        ensure_jars(lock, tmp_path / "jars", no_word)
    assert os.listdir(tmp_path / "jars") == []


def test_a_jar_of_the_cache_that_is_not_the_locked_one_is_replaced(
    repository: Path, lock: Path, tmp_path: Path
) -> None:
    [jar] = ensure_jars(lock, tmp_path / "jars", no_word)
    jar.write_bytes(_CONTENTS[:-1])
    assert ensure_jars(lock, tmp_path / "jars", no_word)[0].read_bytes() == _CONTENTS


def test_a_repository_without_the_jar_is_named(
    repository: Path, lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "_ATTEMPTS", 1)
    (repository / _PATH).unlink()
    with pytest.raises(BedError, match="PS2STREAM_MAVEN_REPOSITORY"):
        ensure_jars(lock, tmp_path / "jars", no_word)


def test_a_lock_with_a_line_that_is_no_jar_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    lock.write_text("org.example:thing:1.2\n")
    with pytest.raises(BedError, match="line 1"):
        read_lock(lock)


def test_the_lock_of_kafka_names_the_broker_and_each_jar_once() -> None:
    locked = read_lock(KAFKA_LOCK)
    assert "org/apache/kafka/kafka_2.13/4.3.1/kafka_2.13-4.3.1.jar" in {jar.path for jar in locked}
    assert len({jar.file_name for jar in locked}) == len(locked)


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_directory() == Path("/caches/ps2stream")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_directory() == Path.home() / ".cache" / "ps2stream"
