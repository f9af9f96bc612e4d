from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from ps2stream_bench.peers.postgres_server import PostgresServer, missing

NEEDS_SERVER = pytest.mark.skipif(missing() is not None, reason=f"PostgreSQL: {missing()}")

#: Starts a server and is killed before it can do anything about it.
KILLED = """
import os, signal
from ps2stream_bench.peers.postgres_server import PostgresServer
server = PostgresServer()
print(server.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_machine_without_programs_is_told_what_to_install(tmp_path: Path) -> None:
    reason = missing(tmp_path)
    assert reason is not None
    assert f"under {tmp_path} (Debian package postgresql)" in reason
    assert missing(tmp_path / "absent") is not None
    with pytest.raises(FileNotFoundError, match="no version with initdb"):
        PostgresServer(tmp_path)


def test_a_machine_without_postgis_is_told_what_to_install(tmp_path: Path) -> None:
    programs = tmp_path / "9" / "bin"
    programs.mkdir(parents=True)
    for name in ("initdb", "pg_ctl", "postgres", "psql"):
        (programs / name).touch()
    (tmp_path / "10" / "bin").mkdir(parents=True)  # newer, but without programs
    reason = missing(tmp_path, tmp_path)
    assert reason == "no PostGIS for version 9 (Debian package postgresql-9-postgis-3)"


def is_running(pid: int) -> bool:
    """Tell whether a process is there and has not ended, whether or not somebody has taken notice."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except FileNotFoundError:
        return False


@NEEDS_SERVER
def test_a_server_answers_tells_errors_and_leaves_nothing_behind() -> None:
    server = PostgresServer()
    try:
        assert server.run("SELECT 6 * 7;") == b"42\n"
        with pytest.raises(RuntimeError, match='relation "nothing" does not exist'):
            server.run("SELECT * FROM nothing;")
        pid = int((server.directory / "data" / "postmaster.pid").read_text().split()[0])
        assert is_running(pid)
    finally:
        server.close()
    server.close()
    assert not server.directory.exists()
    assert not is_running(pid)


@NEEDS_SERVER
def test_a_server_ends_with_the_process_that_was_killed() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    directory = Path(done.stdout.strip())
    assert directory.name.startswith("ps2stream-pg-"), done.stderr
    for _ in range(200):
        if not directory.exists():
            return
        time.sleep(0.05)
    pytest.fail(f"{directory} is still there")
