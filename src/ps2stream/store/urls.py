"""From what a user names, a path or a URL, to a store; and from messages of others, what must not be shown.

A URL says where a store is and never who may use it: credentials come from the environment
(``object_store.py``), so that no file, message or process list of ours has any.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from ps2stream.errors import ConfigError
from ps2stream.extras import require
from ps2stream.files import AnyPath, absolute
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore

#: Where object stores are, by the scheme of their URLs.
OBJECT_SCHEMES = ("s3", "gs", "az")
_USER = re.compile(r"://[^/?#\s\"'@]*@")
_QUERY = re.compile(r"(://[^?#\s\"'<>]*)[?#][^\s\"'<>]*")


def store_at(where: AnyPath) -> Store:
    """Return the store in a directory of this host, or at a URL; it need not have anything yet."""
    if not is_url(where):
        return DirectoryStore(absolute(where))
    parts = urlsplit(str(where))
    if parts.scheme == "file":
        return DirectoryStore(_directory(parts))
    if parts.scheme not in OBJECT_SCHEMES:
        schemes = ", ".join(f"{scheme}://" for scheme in ("file", *OBJECT_SCHEMES))
        raise ConfigError(f"the URL of a store must begin with one of {schemes}; got {parts.scheme}://")
    _check_plain(parts)
    require(f"a store at {parts.scheme}://", "cluster")
    from ps2stream.store.object_store import ObjectStore

    return ObjectStore(f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/"))


def is_url(where: AnyPath) -> bool:
    """Say whether a user named a URL; all else is a path."""
    return isinstance(where, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", where) is not None


def redacted(message: str) -> str:
    """Take out of a message what URLs may carry of credentials: users, passwords, signed queries."""
    return _QUERY.sub(r"\1?...", _USER.sub("://...@", message))


def _check_plain(parts: SplitResult) -> None:
    """Raise for what could be a credential; the message does not repeat it."""
    if "@" in parts.netloc or ":" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            f"the URL of a store must be {parts.scheme}://bucket/prefix, without user, password, port or "
            "query; credentials and endpoints are taken from the environment"
        )
    if not parts.netloc:
        raise ConfigError(f"the URL of a store must name a bucket, {parts.scheme}://bucket/prefix")


def _directory(parts: SplitResult) -> Path:
    if parts.netloc not in ("", "localhost") or not parts.path or parts.query or parts.fragment:
        raise ConfigError("the URL of a directory must be file:///path, of this host and without a query")
    return Path(unquote(parts.path)).absolute()
