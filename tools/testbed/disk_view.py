"""What the processes of a host see of the disk.

The root directory of a host is empty, apart from the system and what is named, read-only, and from
directories of its own. It is put together anew, out of the same directories, for each process that is
started on the host from outside, in a mount namespace that ends with it: there is nothing to take down.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

_SYSTEM = ("usr", "etc", "opt", "nix")
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SHARED = ("proc", "sys", "dev")


def entrance(
    name: str,
    *,
    directory: Path,
    hosts_file: Path,
    home: Path,
    visible: Iterable[Path],
    root: Path = Path("/"),
) -> str:
    """Write the script that makes the view of a host and runs its arguments in it.

    It wants network and host name of the host to be set up already. `directory` keeps what the host has of
    its own; `visible` can be read at the same paths as outside.
    """
    own = {Path("/tmp"): "tmp", Path("/var"): "var", home: "home"}
    system, links = _system(root)
    lines = [f"# The disk of host {name}, and a command on it.", "set -e"]
    # Mounted outside, all this would cover the machine's own directories.
    outside = os.readlink("/proc/self/ns/mnt")
    lines += [f'[ "$(readlink /proc/self/ns/mnt)" != "{outside}" ] || exit 70', f"hostname {name}"]
    lines += [f"cd {shlex.quote(str(directory))}", "mkdir -p root tmp var/tmp home", "chmod 1777 tmp var/tmp"]
    lines += ["mount -t tmpfs -o mode=755,size=4m tmpfs root"]
    for target, source in own.items():
        lines += [_mount(source, target, "--bind")]
    for shared in _SHARED:
        lines += [_mount(f"/{shared}", Path("/", shared), "--rbind")]
    lines += [
        "mount -t tmpfs tmpfs root/dev/shm",
        "mkdir root/run",
        "mount -t tmpfs -o mode=755 tmpfs root/run",
    ]
    lines += [f"ln -s {shlex.quote(target)} root/{link}" for link, target in links.items()]
    for path in outermost([*system, *visible]):
        lines += [_mount(str(path), path, "--rbind"), f"mount -o remount,bind,ro {_inside(path)}"]
    lines += [f"mount --bind {shlex.quote(str(hosts_file))} root/etc/hosts"]
    # The old root goes; what is left is read-only but for the directories of the host.
    lines += ["cd root", "mkdir old", "pivot_root . old", "cd /", "umount -l /old", "rmdir /old"]
    lines += ["mount -o remount,ro /", f"cd {shlex.quote(str(home))}", 'exec "$@"']
    return "\n".join(lines) + "\n"


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Leave out what lies in another of the paths, and what is not there."""
    kept: list[Path] = []
    for path in sorted({Path(os.path.abspath(path)) for path in paths}):
        if path.exists() and not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept


def _system(root: Path) -> tuple[list[Path], dict[str, str]]:
    """Tell directories of the system from links between them (/bin -> usr/bin)."""
    links = {name: os.readlink(root / name) for name in _LINKS if (root / name).is_symlink()}
    names = [name for name in (*_SYSTEM, *_LINKS) if name not in links and (root / name).is_dir()]
    return [root / name for name in names], links


def _mount(source: str, target: Path, how: str) -> str:
    inside = _inside(target)
    make = f"mkdir -p {inside}"
    if Path(source).is_file():
        make = f"mkdir -p {_inside(target.parent)} && touch {inside}"
    return f"{make} && mount {how} {shlex.quote(source)} {inside}"


def _inside(path: Path) -> str:
    return shlex.quote(f"root{path}")
