"""An S3 server by HTTP in this process, which can be told to fail: moto behind a layer of faults.

Faults are functions: they get the request and the way on, and give the answer.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import ThreadedWSGIServer
from werkzeug.test import run_wsgi_app
from werkzeug.wrappers import Request, Response

from ps2stream.store.object_store import ObjectStore

#: What comes back from the server, or from a fault in its place.
Forward = Callable[[], Response]
Fault = Callable[[Request, Forward], Response]

BUCKET = "bucket"
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test-key",
    "AWS_SECRET_ACCESS_KEY": "test-secret",
    "AWS_REGION": "us-east-1",
}


class S3Server:
    """A running server; stores of it share nothing unless they share a URL."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        # moto looks, then writes: without this, two could both find that there is nothing.
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self.fault: Fault | None = None
        self.requests: list[tuple[str, str]] = []
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedWSGIServer("127.0.0.1", 0, self._answer)
        self._server.block_on_close = False  # clients keep connections that they do not use for a while
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        """Return what a process needs to use the server."""
        return {**_ENVIRONMENT, "AWS_ENDPOINT_URL": self.endpoint}

    def start(self) -> None:
        self._thread.start()
        os.environ.update(self.environment)
        self._forward(Request.from_values(f"/{BUCKET}", base_url=self.endpoint, method="PUT"))

    def stop(self) -> None:
        for name in self.environment:
            os.environ.pop(name, None)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def store(self, patience_s: float = 20.0) -> ObjectStore:
        """Return a new store with nothing in it."""
        return ObjectStore(f"s3://{BUCKET}/store-{next(self._numbers)}", patience_s=patience_s)

    @contextlib.contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Answer as a fault says while the block lasts."""
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None

    @contextlib.contextmanager
    def counting(self) -> Iterator[list[tuple[str, str]]]:
        """List the requests of the block: method and path."""
        first = len(self.requests)
        counted: list[tuple[str, str]] = []
        yield counted
        counted.extend(self.requests[first:])

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = Request(environ)
        request.get_data()  # a fault may answer before the server has read it, or let it read twice
        self.requests.append((request.method, request.path))
        fault = self.fault
        response = fault(request, lambda: self._forward(request)) if fault else self._forward(request)
        return response(environ, start_response)

    def _forward(self, request: Request) -> Response:
        builder = {**request.environ, "wsgi.input": io.BytesIO(request.get_data())}
        with self._lock:
            body, status, headers = run_wsgi_app(self._moto, builder, buffered=True)
        return Response(body, status, headers)
