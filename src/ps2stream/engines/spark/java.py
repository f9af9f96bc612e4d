"""Refuse to start Spark without a Java that can run it.

Spark's own report of a missing or old Java is a stack trace of its launcher, or a process that
ends without a word; ours names the Java that was found and what to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from ps2stream.errors import ConfigError

OLDEST_JAVA = 17

# Spark's launcher asks for this module; some stripped runtimes come without it.
_MODULE = "jdk.incubator.vector"
# Up to version 8 Java called itself 1.8; 21-ea and 17.0.15 both start with the number that counts.
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_TIMEOUT_S = 60
_ADVICE = (
    f"Install a Java runtime {OLDEST_JAVA} or newer (Debian and Ubuntu: openjdk-17-jre-headless; "
    "Fedora: java-21-openjdk-headless; macOS: brew install openjdk@17; elsewhere: adoptium.net) "
    "and let JAVA_HOME or PATH point to it"
)


def require_java() -> None:
    """Raise ConfigError unless the Java that Spark would start is able to run it."""
    java = _java_of_spark()
    output, succeeded = _ask(java, f"--add-modules={_MODULE}", "-version")
    if not succeeded:
        output, runs = _ask(java, "-version")
        if not runs:
            raise ConfigError(f"Spark needs Java {OLDEST_JAVA} or newer; {java} does not run. {_ADVICE}")
    version = _VERSION.search(output)
    if version is None or int(version[1]) < OLDEST_JAVA:
        found = f"is Java {version[1]}" if version else "does not tell its version"
        raise ConfigError(f"Spark needs Java {OLDEST_JAVA} or newer; {java} {found}. {_ADVICE}")
    if not succeeded:
        raise ConfigError(f"Spark needs a Java with the module {_MODULE}; {java} lacks it. {_ADVICE}")


def _java_of_spark() -> str:
    # The order of Spark's launcher: a JAVA_HOME that is set hides PATH, even when it holds no Java.
    home = os.environ.get("JAVA_HOME")
    if home:
        return str(Path(home, "bin", "java"))
    java = shutil.which("java")
    if java is None:
        raise ConfigError(
            f"Spark needs Java {OLDEST_JAVA} or newer; JAVA_HOME is not set and PATH has no java. {_ADVICE}"
        )
    return java


def _ask(java: str, *options: str) -> tuple[str, bool]:
    try:
        answer = subprocess.run(
            [java, *options],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "", False
    return answer.stderr + answer.stdout, answer.returncode == 0
