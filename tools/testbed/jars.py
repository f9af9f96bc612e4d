"""Jars of Maven Central, by coordinate, with the contents that the lock file names."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import BedError

KAFKA_LOCK = Path(__file__).with_name("kafka.lock")
_REPOSITORY = "https://repo1.maven.org/maven2"
_ATTEMPTS = 3
_TIMEOUT_S = 60.0
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where a Maven repository has it."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.file_name}"


def read_lock(lock: Path) -> list[Jar]:
    """Read a lock file: SHA-256 and coordinate, a line each."""
    jars = []
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        match line.replace(":", " ").split():
            case [sha256, group, artifact, version] if len(sha256) == 64:
                jars.append(Jar(group, artifact, version, sha256))
            case _:
                raise BedError(
                    f"{lock}, line {number}: expected SHA-256 and group:artifact:version; got {line!r}"
                )
    return jars


def cache_directory() -> Path:
    """Return where the user's files are that can be had again (the XDG base directories)."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return base / "ps2stream"


def ensure_jars(lock: Path, directory: Path, say: Callable[[str], None]) -> list[Path]:
    """Return the jars of a lock file, each with its contents verified; download what is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    jars = read_lock(lock)
    absent = [jar for jar in jars if not _is_whole(jar, directory)]
    if absent:
        say(f"downloading {len(absent)} of {len(jars)} jars to {directory}")
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda jar: _download(jar, directory), absent))
    return [directory / jar.file_name for jar in jars]


def _is_whole(jar: Jar, directory: Path) -> bool:
    try:
        contents = (directory / jar.file_name).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(contents).hexdigest() == jar.sha256


def _download(jar: Jar, directory: Path) -> None:
    repository = os.environ.get("PS2STREAM_MAVEN_REPOSITORY") or _REPOSITORY
    url = f"{repository.rstrip('/')}/{jar.path}"
    contents = _fetched(url)
    found = hashlib.sha256(contents).hexdigest()
    if found != jar.sha256:
        raise BedError(f"{url} is not what the lock names: SHA-256 {jar.sha256} is needed; got {found}")
    # Several runs may do this at once; a name means a whole file.
    with tempfile.NamedTemporaryFile(dir=directory, prefix=".part-", delete=False) as part:
        part.write(contents)
    os.replace(part.name, directory / jar.file_name)


def _fetched(url: str) -> bytes:
    for attempt in range(_ATTEMPTS):
        try:
            # Proxies and certificates: urllib takes those of the environment.
            with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
                return bytes(answer.read())
        except (urllib.error.URLError, OSError) as error:
            if attempt + 1 == _ATTEMPTS or (isinstance(error, urllib.error.HTTPError) and error.code == 404):
                raise BedError(
                    f"{url}: {error}; PS2STREAM_MAVEN_REPOSITORY=https://... names another repository"
                ) from error
            time.sleep(2.0**attempt)
    raise AssertionError("unreachable")
