"""Metrics over HTTP: ``GET /metrics`` for Prometheus; any other path says where they are.

The text, and what may be asked of it (formats, compression), are the matter of Prometheus' own client. There
is no password and no encryption: whoever reaches the port reads the figures. So it listens to this host alone
unless told otherwise.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from ps2stream.errors import ConfigError
from ps2stream.metrics.board import Board
from ps2stream.metrics.exposition import registry_of

LOOPBACK = "127.0.0.1"
PATH = "/metrics"
_WHERE = b"<html><body>PS2Stream: <a href='/metrics'>/metrics</a> for Prometheus</body></html>\n"

_App = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@contextlib.contextmanager
def serving(board: Board, host: str = LOOPBACK, port: int = 0) -> Iterator[str]:
    """Serve a board in a thread while the context lasts; yield the address of its metrics.

    Port 0 takes a free one. It raises at once where the address cannot be had.
    """
    server = _server(host, port, _app(board))
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="metrics", daemon=True)
    thread.start()
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_port}{PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each request, so that a slow reader holds up nobody."""

    daemon_threads = True


class _IPv6Server(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    #: Who connects and asks nothing for so many seconds is let go.
    timeout = 10

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: stderr is for figures."""


def _server(host: str, port: int, app: _App) -> WSGIServer:
    kind = _IPv6Server if ":" in host else _Server
    try:
        return make_server(host, port, app, kind, _Handler)
    except (OSError, OverflowError, UnicodeError) as error:
        words = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(f"metrics cannot be served at {host}:{port}: {words or error}") from error


def _app(board: Board) -> _App:
    metrics: _App = make_wsgi_app(registry_of(board))

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == PATH:
            return metrics(environ, start_response)
        is_root = environ["PATH_INFO"] == "/"
        headers = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(_WHERE)))]
        start_response("200 OK" if is_root else "404 Not Found", headers)
        return [_WHERE]

    return app
