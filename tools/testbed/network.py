"""The bridge and the cables of a bed."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from types import FrameType

from testbed.errors import BedError
from testbed.layout import Layout, Member
from testbed.requirements import program


def make_network(layout: Layout) -> None:
    """Make the bridge, the namespaces and a cable to each."""
    prefix = layout.subnet.prefixlen
    lines = [
        f"link add {layout.bridge} type bridge",
        f"addr add {layout.driver_address}/{prefix} dev {layout.bridge}",
        f"link set {layout.bridge} up",
    ]
    for member in layout.members:
        lines += [
            f"netns add {member.namespace}",
            f"link add {member.veth} type veth peer name eth0 netns {member.namespace}",
            f"link set {member.veth} master {layout.bridge} up",
        ]
    _ip_batch(lines)
    for member in layout.members:
        # No way out: what a bed needs is in the bed.
        configuration = [f"addr add {member.address}/{prefix} dev eth0", "link set eth0 up", "link set lo up"]
        _ip_batch(configuration, "-netns", member.namespace)


def remove_network(bed: str) -> None:
    """Remove whatever is there of the bridge, the namespaces and the cables of a bed."""
    for namespace in namespaces():
        if namespace.startswith(f"{bed}-"):
            _ip("netns", "delete", namespace)
    for link in _links():
        if link == bed or link.startswith(f"{bed}-"):
            # The kernel removes the cables of a namespace that is gone when it gets round to it.
            with contextlib.suppress(BedError):
                _ip("link", "delete", link)


def namespaces() -> list[str]:
    """List the names of all network namespaces of the machine."""
    return [line.split()[0] for line in _ip("netns", "list").splitlines() if line]


def _links() -> list[str]:
    return [link["ifname"] for link in json.loads(_ip("-json", "link", "show"))]


def plug(member: Member) -> None:
    _ip("link", "set", member.veth, "up")


def unplug(member: Member) -> None:
    _ip("link", "set", member.veth, "down")


def sever(member: Member, other: Member) -> None:
    """Cut one link: what a member says to another gets lost, without a word."""
    _ip("-netns", member.namespace, "route", "add", "blackhole", f"{other.address}/32")


def rejoin(member: Member, other: Member) -> None:
    _ip("-netns", member.namespace, "route", "delete", "blackhole", f"{other.address}/32")


@contextlib.contextmanager
def unplugged(member: Member) -> Iterator[None]:
    """Cut a member off while the context lasts, even if that is ended by a signal."""

    def end(signum: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + signum)

    before = {signum: signal.signal(signum, end) for signum in (signal.SIGTERM, signal.SIGHUP)}
    try:
        unplug(member)
        yield
    finally:
        plug(member)
        for signum, handler in before.items():
            signal.signal(signum, handler)


def cut(member: Member, seconds: float) -> None:
    with unplugged(member):
        time.sleep(seconds)


def _ip(*arguments: str) -> str:
    return _run(arguments, None)


def _ip_batch(lines: list[str], *options: str) -> None:
    _run((*options, "-batch", "-"), "\n".join(lines) + "\n")


def _run(arguments: tuple[str, ...], text: str | None) -> str:
    done = subprocess.run(
        [program("ip"), *arguments], input=text, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BedError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
