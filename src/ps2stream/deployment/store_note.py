"""The note in a home that says in which store the state and the output of its job are.

    HOME/store.json           {"store": "s3://bucket/alerts", "deployment": "8c1f..."}
    STORE/deployment.json     {"deployment": "8c1f...", "home": "/srv/alerts on host-a"}

A journal and the state that was made from it belong together: a job that met another's journal would take its
positions for its own. So both sides have the same name of the deployment, and a home whose name is not that
of the store is refused. A home that moves to another host takes its note along.

The note is made before the first state is, and never changed. It has a URL and no credentials: a URL with
any is refused (``store/urls.py``).
"""

from __future__ import annotations

import contextlib
import json
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ps2stream.errors import MissingError, StateError
from ps2stream.files import AnyPath, absolute, new_file
from ps2stream.state.home_layout import HomeLayout
from ps2stream.state.job_file import JobFile
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.urls import is_url, store_at

_CLAIM = "deployment.json"


@dataclass(frozen=True, slots=True)
class StoreNote:
    """The file ``store.json`` of a home."""

    directory: Path

    @property
    def _path(self) -> Path:
        return self.directory / "store.json"

    def store(self) -> str | None:
        """Return the URL of the store; None where the job keeps everything in the home."""
        said = self._read()
        return None if said is None else str(said["store"])

    def check(self, url: str) -> None:
        """Raise if the home has its state elsewhere, or the store another home; nothing is written."""
        said = self._read()
        elsewhere = self._local_state() if said is None or said["store"] == url else said["store"]
        if elsewhere is not None:
            raise StateError(
                f"the job of {self.directory} has its state in {elsewhere}, and cannot have it in {url}"
            )
        claim = _claim_of(store_at(url))
        if claim is not None and (said is None or claim["deployment"] != said["deployment"]):
            raise self._foreign(url, claim)

    def write(self, url: str) -> None:
        """Bind the home and a store, which were checked, to each other; do nothing where they are."""
        self.directory.mkdir(parents=True, exist_ok=True)
        note = {"store": url, "deployment": uuid.uuid4().hex}
        is_new = new_file(self._path, f"{json.dumps(note)}\n".encode())
        said = self._read()
        if said is None or said["store"] != url:  # somebody else was faster
            self.check(url)
            raise StateError(f"{self._path} has gone")
        try:
            self._claim(url, said["deployment"])
        except StateError:
            # Home and store were not bound before: where they are not now, the home may have another store.
            with contextlib.suppress(StateError):
                claim = _claim_of(store_at(url))
                if is_new and (claim is None or claim["deployment"] != said["deployment"]):
                    self._path.unlink()
            raise

    def _claim(self, url: str, deployment: str) -> None:
        store = store_at(url)
        about = {"deployment": deployment, "home": f"{self.directory} on {socket.gethostname()}"}
        if store.put_if_absent(_CLAIM, json.dumps(about).encode()):
            return
        claim = _claim_of(store)
        if claim is not None and claim["deployment"] != deployment:
            raise self._foreign(url, claim)

    def _local_state(self) -> Path | None:
        """Return where the home itself has a state, if it has one or is about to."""
        from ps2stream.state.host_files import HostFiles  # only a job needs it, and it takes long

        directory = HomeLayout(self.directory).state
        has_one = JobFile(DirectoryStore(directory)).exists() or HostFiles(directory).lock.is_held()
        return directory if has_one else None

    def _foreign(self, url: str, claim: dict[str, Any]) -> StateError:
        return StateError(
            f"the store {url} belongs to the deployment in {claim['home']}, not to {self.directory}; "
            "use another store for this one"
        )

    def _read(self) -> dict[str, str] | None:
        try:
            said = json.loads(self._path.read_bytes())
            return {name: str(said[name]) for name in ("store", "deployment")}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateError(f"{self._path} cannot be read: {error!r}") from error


def url_of(store: AnyPath) -> str:
    """Return the URL of a store that a user named, also of a directory; raise if it cannot be one."""
    url = str(store).rstrip("/") if is_url(store) else absolute(store).as_uri()
    store_at(url)
    return url


def _claim_of(store: Store) -> dict[str, Any] | None:
    try:
        said = json.loads(bytes(store.get(_CLAIM)))
        return {name: str(said[name]) for name in ("deployment", "home")}
    except MissingError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"{store.location(_CLAIM)} cannot be read: {error!r}") from error
