"""A PostgreSQL server of our own: in a temporary directory, on a unix socket, gone when it is closed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

#: Where Debian and Ubuntu put the versions of PostgreSQL.
PROGRAMS = Path("/usr/lib/postgresql")
_EXTENSIONS = Path("/usr/share/postgresql")
_NEEDED = ("initdb", "pg_ctl", "postgres", "psql")
#: The user that Debian's package makes; the server refuses to run as root.
_USER = "postgres"

#: Wait for the end of stdin, run what stops the server, remove its directory.
_GUARD = 'cat; directory=$1; shift; "$@"; rm -rf "$directory"'

_SETTINGS = {
    "listen_addresses": "''",
    "shared_buffers": "1GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "512MB",
    # Nothing has to survive a crash.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    # Queries are short, compiling them would take longer.
    "jit": "off",
    # The planner thinks a few thousand publications too few for several processes; for a join they are not.
    "max_parallel_workers_per_gather": "2",
    "min_parallel_table_scan_size": "0",
    "parallel_setup_cost": "0",
    "parallel_tuple_cost": "0",
    "random_page_cost": "1.1",
}


def missing(programs: Path = PROGRAMS, extensions: Path = _EXTENSIONS) -> str | None:
    """Say what a server with PostGIS lacks on this machine; None if nothing."""
    version = _newest(programs)
    if version is None:
        return f"no version with {', '.join(_NEEDED)} under {programs} (Debian package postgresql)"
    if not (extensions / version.name / "extension" / "postgis.control").exists():
        return f"no PostGIS for version {version.name} (Debian package postgresql-{version.name}-postgis-3)"
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        return "the server refuses to run as root, and setpriv, which changes the user, is not there"
    return None


class PostgresServer:
    """Run SQL on a server that lives as long as this."""

    def __init__(self, programs: Path = PROGRAMS) -> None:
        version = _newest(programs)
        if version is None:
            raise FileNotFoundError(f"PostgreSQL: {missing(programs)}")
        self._programs = version / "bin"
        # Not under TMPDIR: the path of a socket may have a hundred characters only.
        self.directory = Path(tempfile.mkdtemp(prefix="ps2stream-pg-", dir="/tmp"))
        self._guard = self._start_guard()
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def run(self, script: str) -> bytes:
        """Run SQL; return what it writes to stdout."""
        options = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(self.directory), "-U", _USER]
        command = [str(self._programs / "psql"), *options, "-d", "postgres", "-f", "-"]
        # Settings of the user's own servers must not reach this one.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        done = subprocess.run(
            command, input=script.encode(), capture_output=True, check=False, env=environment
        )
        if done.returncode:
            raise RuntimeError(f"PostgreSQL refused: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def close(self) -> None:
        """Stop the server and remove its files."""
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()

    def _start_guard(self) -> subprocess.Popen[bytes]:
        """Start what clears up once our end of its pipe is closed: by us, or because we were killed.

        A session of its own keeps Ctrl-C from it, as pg_ctl does for the server.
        """
        stop = [str(self._programs / "pg_ctl"), "-D", str(self.directory / "data"), "-m", "immediate", "stop"]
        command = ["sh", "-c", _GUARD, "guard", str(self.directory), *_as_server_user(), *stop]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def _start(self) -> None:
        data = self.directory / "data"
        if os.geteuid() == 0:
            shutil.chown(self.directory, _USER, _USER)
        options = ["-U", _USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        self._call("initdb", "-D", str(data), *options)
        settings = {**_SETTINGS, "unix_socket_directories": f"'{self.directory}'"}
        with (data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        self._call("pg_ctl", "-D", str(data), "-l", str(self.directory / "log"), "-w", "start")

    def _call(self, program: str, *arguments: str) -> None:
        command = [*_as_server_user(), str(self._programs / program), *arguments]
        # Into a file: the server inherits it, and a pipe would stay open as long as the server runs.
        with tempfile.TemporaryFile() as output:
            code = subprocess.call(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.directory
            )
            if code:
                output.seek(0)
                raise RuntimeError(f"{program} failed: {output.read().decode(errors='replace').strip()}")


def _newest(programs: Path) -> Path | None:
    """Return the directory of the newest version that has all programs."""
    versions = [
        path
        for path in (programs.iterdir() if programs.is_dir() else ())
        if re.fullmatch(r"\d+", path.name) and all((path / "bin" / name).exists() for name in _NEEDED)
    ]
    return max(versions, key=lambda path: int(path.name), default=None)


def _as_server_user() -> list[str]:
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", "--"]
