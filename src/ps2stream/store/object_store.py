"""A store in a bucket of an object store: S3 and what speaks its protocol, Google Cloud, Azure.

Puts are whole by the nature of these stores, and all three promise that who reads or lists after a put has
returned sees it. What is left to do here:

**A put that fails after it has happened.** The answer to a put may get lost. The client tries again, and is
told that there *is* a blob: its own. ``put_if_absent`` must not take that for another's, or nobody would
have won. To compare contents is not enough: two writers may put the same, and yet only one must win. So each
call gives its blob a token, as metadata of the object that is written with it in one step; whoever is told
that there is a blob looks whose token it has. With the token a put may be repeated as often as needed: it
lands once, and all answers agree. Where the store cannot be reached any more, nobody knows, and the call
raises; a caller that comes back to it finds its blob, or none.

**Uploads in parts.** A large blob goes up in parts, and nobody sees it before the last. What a killed writer
left of one is not listed and cannot be read, only paid for: give the bucket a rule that removes unfinished
uploads after a day. So ``sweep`` has nothing to do.

**Credentials** come from where these clients always look, and are never kept: ``AWS_ACCESS_KEY_ID``,
``AWS_SECRET_ACCESS_KEY``, ``AWS_SESSION_TOKEN``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``, web identity, roles of
containers and instances, and ``AWS_PROFILE`` where boto3 is installed; ``GOOGLE_APPLICATION_CREDENTIALS`` and
accounts of instances; ``AZURE_STORAGE_ACCOUNT_NAME`` with a key, a SAS token or an identity. Errors of the
client name requests, signed ones too: they are passed on in an excerpt without queries, and without the
original.

A store is sent between processes as a URL, and each process connects by itself when it first needs to. The
client's threads do not outlive a fork, and one that waits for them would wait forever: whoever is forked from
a process that has used an object store is told so. (Spark's Python processes are forked from a daemon that
uses none.)
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError
from obstore.store import ObjectStore as Connection
from obstore.store import from_url

from ps2stream.errors import ConfigError, MissingError, StateError
from ps2stream.extras import is_installed
from ps2stream.store.contract import Store, checked
from ps2stream.store.traffic import Traffic, count
from ps2stream.store.urls import redacted

#: Letters only: Azure wants an identifier, and proxies drop headers with underscores.
_TOKEN = "ps2streamtoken"
#: The size of a part of a large upload, and what is kept in memory of one.
_PART_BYTES = 8 << 20
#: How often a put is tried that may have happened; each time the client itself has tried for its patience.
_ATTEMPTS = 3
_FAILURES = (BaseError, OSError)
_ENDPOINT = "AWS_ENDPOINT_URL"


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Objects of a bucket below a prefix; a process may send it to another, on any host.

    ``url`` has no credentials in it (``urls.store_at``). ``patience_s``: how long a request that fails is
    tried again, with growing pauses, before that is an error.
    """

    url: str
    prefix: str = ""
    patience_s: float = 120.0

    def put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        count(Traffic(puts=1, bytes_out=len(data)))
        with self._telling("write", key):
            obstore.put(self._connection(), path, data, chunk_size=_PART_BYTES)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        path, token = self._path(key), uuid.uuid4().hex
        with self._telling("write", key):
            for _ in range(_ATTEMPTS):
                count(Traffic(puts=1, bytes_out=len(data)))
                try:
                    obstore.put(self._connection(), path, data, mode="create", attributes={_TOKEN: token})
                    return True
                except AlreadyExistsError as error:
                    failure: BaseError = error
                except GenericError as error:  # it may have happened all the same
                    failure = error
                with contextlib.suppress(FileNotFoundError):  # two at once can also keep each other out
                    return self._token(path) == token
            raise failure

    @contextlib.contextmanager
    def writer(self, key: str) -> Iterator[BinaryIO]:
        path = self._path(key)
        with tempfile.SpooledTemporaryFile(_PART_BYTES) as file:
            yield cast(BinaryIO, file)
            with self._telling("write", key):
                put = Traffic(puts=1, bytes_out=file.tell())
                file.seek(0)
                count(put)
                try:
                    obstore.put(self._connection(), path, file, chunk_size=_PART_BYTES)
                except GenericError:
                    # The last step of an upload in parts cannot be repeated if it did happen; all of it can.
                    file.seek(0)
                    count(put)
                    obstore.put(self._connection(), path, file, chunk_size=_PART_BYTES)

    def get(self, key: str) -> pa.Buffer:
        path = self._path(key)
        count(Traffic(gets=1))
        with self._telling("read", key):
            try:
                blob = pa.py_buffer(obstore.get(self._connection(), path).bytes())
            except FileNotFoundError:
                raise MissingError(f"{self.location(key)} is missing") from None
        count(Traffic(bytes_in=blob.size))
        return blob

    def list(self, prefix: str = "") -> list[str]:
        start = self._path(prefix) if prefix else self.prefix.removesuffix("/")
        count(Traffic(lists=1))
        with self._telling("list", prefix):
            found = obstore.list(self._connection(), prefix=start or None).collect()
        return sorted(each["path"][len(self.prefix) :] for each in found)

    def delete(self, *keys: str) -> None:
        paths = [self._path(key) for key in keys]
        if not paths:
            return
        with self._telling("delete", keys[0]):
            try:
                self._delete(paths)
            except FileNotFoundError:  # some stores mind; what became of the others is not known then
                for path in paths:
                    with contextlib.suppress(FileNotFoundError):
                        self._delete([path])

    def _delete(self, paths: Sequence[str]) -> None:
        """Delete objects by one request, or as few as the store knows."""
        count(Traffic(deletes=1))
        obstore.delete(self._connection(), paths)

    def sweep(self) -> None:
        """Do nothing: what was not put whole is no object."""

    def under(self, prefix: str) -> Store:
        return replace(self, prefix=f"{self._path(prefix)}/")

    def location(self, key: str = "") -> str:
        return f"{self.url}/{self._path(key) if key else self.prefix}".rstrip("/")

    def _path(self, key: str) -> str:
        return self.prefix + checked(key)

    def _connection(self) -> Connection:
        return _connected(_user_of_client(), self.url, self.patience_s)

    def _token(self, path: str) -> str | None:
        """Return the token of the call that put an object; others have none."""
        count(Traffic(gets=1))
        found = obstore.get(self._connection(), path, options={"head": True})
        return found.attributes.get(_TOKEN)

    @contextlib.contextmanager
    def _telling(self, what: str, key: str) -> Iterator[None]:
        """Say in our words what failed; the client's own error may have signed requests in it."""
        try:
            yield
        except _FAILURES as error:
            raise StateError(f"cannot {what} {self.location(key)}: {_excerpt(error)}") from None


def _excerpt(error: Exception) -> str:
    """Return the first line of an error, which says it all; what follows are its internals."""
    return redacted(str(error).partition("\n")[0])


def _user_of_client() -> int:
    """Return the process that uses the client; raise in those forked from it."""
    pid = os.getpid()
    user = _users.setdefault("client", pid)
    if pid != user:
        raise StateError(
            f"process {pid} was forked from process {user}, which had used an object store already; "
            "start processes by spawn, or fork them before the first use"
        )
    return pid


#: The process that used the client first.
_users: dict[str, int] = {}


@functools.lru_cache(maxsize=16)
def _connected(pid: int, url: str, patience_s: float) -> Connection:
    """Return the client of this process."""
    options: dict[str, Any] = {
        "retry_config": {
            "max_retries": 1_000,  # time is the limit
            "retry_timeout": timedelta(seconds=patience_s),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=5),
                "base": 2,
            },
        },
        "client_options": {
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": timedelta(seconds=20),
            "timeout": timedelta(seconds=120),
            # Who names an endpoint without TLS means it.
            "allow_http": os.environ.get(_ENDPOINT, "").startswith("http://"),
        },
    }
    if urlsplit(url).scheme == "s3" and _wants_profile():
        options["credential_provider"] = _profile_credentials()
    try:
        return from_url(url, **options)
    except (*_FAILURES, ValueError) as error:
        raise StateError(f"cannot open the store at {url}: {_excerpt(error)}") from None


def _wants_profile() -> bool:
    """Say whether a profile is named that nothing else takes precedence over."""
    return bool(os.environ.get("AWS_PROFILE")) and not os.environ.get("AWS_ACCESS_KEY_ID")


def _profile_credentials() -> object:
    """Let boto3 read the profile that the environment names: the client does not know profiles."""
    if not is_installed("boto3"):
        raise ConfigError("AWS_PROFILE needs boto3: pip install boto3, or set AWS_ACCESS_KEY_ID")
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider()
