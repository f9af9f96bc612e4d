"""An S3 server that still has everything after it was killed.

moto keeps objects in memory. Here each request that changes something is written to a journal before it is
answered, and a server that starts runs its journal first. One request at a time: the journal has them in
the order in which they took effect, and of two that put the same absent key one wins (moto checks, and then
puts).
Only the process can be killed without loss, not the machine: nothing is synced.
"""

from __future__ import annotations

import datetime
import io
import json
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from moto.moto_api._internal import mock_random
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3 import models
from werkzeug.serving import run_simple
from werkzeug.test import run_wsgi_app

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

#: Body, status and headers.
Answer: TypeAlias = "tuple[bytes, str, list[tuple[str, str]]]"
_READS = ("GET", "HEAD", "OPTIONS")
_KEPT = (
    "CONTENT_TYPE",
    "PATH_INFO",
    "QUERY_STRING",
    "RAW_URI",
    "REMOTE_ADDR",
    "REQUEST_METHOD",
    "REQUEST_URI",
)


class DurableStore:
    """A WSGI application: moto's, with a journal."""

    def __init__(self, journal: Path) -> None:
        setattr(models, "os", _SeededSystem())  # noqa: B010  # moto exports it to nobody
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._n_changes = 0
        self._repeat(journal)
        self._journal = journal.open("ab")

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        # Read before the lock is taken: a client that stops in the middle must not stop the others.
        body = _body(environ)
        with self._lock:
            if environ["REQUEST_METHOD"] in _READS:
                answer, status, headers = self._run(environ, body)
            else:
                answer, status, headers = self._change(environ, body)
        start_response(status, headers)
        return [answer]

    def _change(self, environ: WSGIEnvironment, body: bytes) -> Answer:
        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        result = self._run_change(environ, body, now)
        if int(result[1].split()[0]) < 400:
            head = {name: value for name, value in environ.items() if _is_kept(name)}
            entry = {"number": self._n_changes, "time": now.isoformat(), "length": len(body), "request": head}
            self._journal.write(json.dumps(entry).encode() + b"\n" + body)
            self._journal.flush()
        return result

    def _run_change(self, environ: WSGIEnvironment, body: bytes, now: datetime.datetime) -> Answer:
        """Run a request with the same result whenever it is run: ids come of its number, times of `now`."""
        self._n_changes += 1
        mock_random.seed(self._n_changes)
        setattr(models, "utcnow", lambda: now)  # noqa: B010
        return self._run(environ, body)

    def _run(self, environ: WSGIEnvironment, body: bytes) -> Answer:
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        parts, status, headers = run_wsgi_app(self._moto, environ, buffered=True)
        return b"".join(parts), status, list(headers)

    def _repeat(self, journal: Path) -> None:
        if not journal.exists():
            return
        whole = 0
        with journal.open("rb") as file:
            for entry, body in _entries(file):
                self._n_changes = entry["number"] - 1
                environ = {**_nowhere(), **entry["request"]}
                self._run_change(environ, body, datetime.datetime.fromisoformat(entry["time"]))
                whole = file.tell()
        # What the server was writing when it was killed was not answered either.
        os.truncate(journal, whole)


def _entries(file: IO[bytes]) -> Iterator[tuple[dict[str, Any], bytes]]:
    while (line := file.readline()).endswith(b"\n"):
        entry = json.loads(line)
        body = file.read(entry["length"])
        if len(body) < entry["length"]:
            return
        yield entry, body


def _body(environ: WSGIEnvironment) -> bytes:
    # Werkzeug's server ends the stream itself where the length is not known beforehand.
    if environ.get("wsgi.input_terminated"):
        return bytes(environ["wsgi.input"].read())
    return bytes(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.startswith("HTTP_")


def _nowhere() -> dict[str, Any]:
    """Return what a request needs beside its own words."""
    return {
        "SCRIPT_NAME": "",
        "SERVER_NAME": "store",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }


class _SeededSystem:
    """`os` for moto's models, where ids of uploads come from the source of chance that we seed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def urandom(self, n: int) -> bytes:
        return mock_random.randbytes(n)


def serve(address: str, port: int, journal: Path) -> None:
    """Serve S3 until the process is ended."""
    store = DurableStore(journal)
    run_simple(address, port, store, threaded=True, request_handler=MotoRequestHandler)
