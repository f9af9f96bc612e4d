"""Each test puts a small script instead of Java; none of them starts a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ps2stream.engines.spark.java import require_java
from ps2stream.errors import ConfigError


@pytest.fixture
def java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "jvm"
    (home / "bin").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return home


def write_java(home: Path, says: str, fails_on: str = "nothing", status: int = 0) -> None:
    script = home / "bin" / "java"
    script.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *{fails_on}*) exit 1 ;; esac\n'
        f"cat >&2 <<'EOF'\n{says}\nEOF\n"
        f"exit {status}\n"
    )
    script.chmod(0o755)


@pytest.mark.parametrize(
    "says",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'openjdk version "21-ea" 2023-09-19',
        'java version "25" 2025-09-16 LTS',
        'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.2" 2022-01-18',
    ],
)
def test_a_java_of_17_or_newer_is_accepted(java_home: Path, says: str) -> None:
    write_java(java_home, says)
    require_java()


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('java version "1.8.0_392"', "8"),
        ('openjdk version "11.0.21" 2023-10-17', "11"),
        ('x version "16"', "16"),
    ],
)
def test_an_older_java_is_refused_with_its_version_and_place(
    java_home: Path, says: str, version: str
) -> None:
    write_java(java_home, says, fails_on="--add-modules")
    with pytest.raises(ConfigError, match=rf"{java_home}/bin/java is Java {version}\. Install"):
        require_java()


def test_a_java_without_the_module_that_spark_asks_for_is_refused(java_home: Path) -> None:
    write_java(java_home, 'openjdk version "17.0.4"', fails_on="--add-modules")
    with pytest.raises(ConfigError, match=r"module jdk\.incubator\.vector"):
        require_java()


def test_a_java_that_tells_no_version_is_refused(java_home: Path) -> None:
    write_java(java_home, "something else")
    with pytest.raises(ConfigError, match="does not tell its version"):
        require_java()


def test_a_java_that_fails_is_refused(java_home: Path) -> None:
    # macOS ships a /usr/bin/java that only says where to get one.
    write_java(java_home, "Unable to locate a Java Runtime.", status=1)
    with pytest.raises(ConfigError, match="does not run"):
        require_java()


def test_a_java_home_without_java_is_refused_although_path_has_one(
    java_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = tmp_path / "good"
    (good / "bin").mkdir(parents=True)
    write_java(good, 'openjdk version "17.0.15"')
    monkeypatch.setenv("PATH", str(good / "bin"), prepend=":")
    with pytest.raises(ConfigError, match=rf"{java_home}/bin/java does not run"):
        require_java()
    monkeypatch.delenv("JAVA_HOME")
    require_java()


def test_no_java_at_all_is_refused_with_an_instruction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"PATH has no java\. Install a Java runtime 17 or newer"):
        require_java()
