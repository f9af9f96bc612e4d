"""What the machine must have for a bed."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys

from testbed.errors import MissingRequirementError

# A root shell that was got by `su` has no /sbin on its PATH.
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROGRAMS = {
    "ip": "iproute2 (Debian, Ubuntu: sudo apt-get install iproute2; Fedora: sudo dnf install iproute)",
    "unshare": "util-linux",
    "mount": "util-linux",
    "pivot_root": "util-linux",
}


def system_path() -> str:
    return os.pathsep.join(part for part in (os.environ.get("PATH"), _SYSTEM_PATH) if part)


def program(name: str) -> str:
    """Return the path of a program of the system."""
    found = shutil.which(name, path=system_path())
    if found is None:
        raise MissingRequirementError(f"the program {name} is needed; install {_PROGRAMS.get(name, 'it')}")
    return found


def java() -> str:
    """Return the path of the Java that Spark would take."""
    if home := os.environ.get("JAVA_HOME"):
        return os.path.join(home, "bin", "java")
    return program("java")


@functools.cache
def missing() -> str | None:
    """Say why this machine can run no bed; None if it can."""
    if sys.platform != "linux":
        return "a cluster on one machine needs Linux (network namespaces)"
    if os.geteuid() != 0:
        return "a cluster on one machine needs root, to make network namespaces: sudo ./dev cluster ..."
    try:
        for name in _PROGRAMS:
            program(name)
        java()
    except MissingRequirementError as error:
        return f"a cluster on one machine: {error}"
    # Root in a container may lack the rights that count.
    tried = subprocess.run(
        [program("unshare"), "--net", "--mount", "--uts", "true"], capture_output=True, check=False
    )
    if tried.returncode != 0:
        return (
            "a cluster on one machine needs the right to make network and mount namespaces"
            " (in a container: --privileged, or CAP_SYS_ADMIN and CAP_NET_ADMIN)"
        )
    return None


def require() -> None:
    if reason := missing():
        raise MissingRequirementError(reason)
