"""A home and a store are bound to each other once, and refuse all others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from werkzeug.wrappers import Request, Response

from cli.plans import cell_plan
from ps2stream.config import Settings
from ps2stream.deployment.home import Home, newest_state
from ps2stream.deployment.store_note import StoreNote, url_of
from ps2stream.errors import ConfigError, StateError
from ps2stream.state.state import State
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.urls import store_at
from s3_server import Forward, S3Server


def _bound(home: Home, url: str) -> None:
    StoreNote(home.directory).check(url)
    StoreNote(home.directory).write(url)


def test_a_home_without_a_note_has_everything_in_it(home: Home) -> None:
    assert home.store is None
    assert (home.state, home.out) == (home.directory / "state", home.directory / "out")
    assert not home.directory.exists()


def test_a_home_with_a_note_finds_state_and_output_below_the_store(home: Home, s3: S3Server) -> None:
    url = s3.store().location()
    _bound(home, url)
    assert (home.store, home.state, home.out) == (url, f"{url}/state", f"{url}/out")
    assert home.journal == home.directory / "journal", "that stays with the home"
    _bound(home, url)
    assert home.store == url, "again is fine"


def test_what_is_in_the_note_is_a_place_and_a_name(home: Home, tmp_path: Path) -> None:
    _bound(home, url_of(tmp_path / "mounted"))
    note = json.loads((home.directory / "store.json").read_text())
    assert note["store"] == (tmp_path / "mounted").as_uri()
    assert set(note) == {"store", "deployment"}
    assert newest_state(home.state).store.location() == str(tmp_path / "mounted" / "state")


def test_another_store_than_the_noted_one_is_refused(home: Home, tmp_path: Path) -> None:
    first, second = url_of(tmp_path / "first"), url_of(tmp_path / "second")
    _bound(home, first)
    for refused in (StoreNote(home.directory).check, StoreNote(home.directory).write):
        with pytest.raises(StateError, match=f"has its state in {first}, and cannot have it in {second}"):
            refused(second)
    assert home.store == first


def test_a_store_is_refused_where_the_home_has_a_state_or_a_job_that_is_making_one(
    home: Home, tmp_path: Path
) -> None:
    url, state = url_of(tmp_path / "mounted"), State.at(home.state)
    with (
        state.host.lock.held(),
        pytest.raises(StateError, match=rf"has its state in {home.state}, and cannot have it in {url}"),
    ):
        StoreNote(home.directory).check(url)
    state.create(cell_plan(2), Settings(n_workers=2))
    with pytest.raises(StateError, match=rf"has its state in {home.state}, and cannot have it in {url}"):
        StoreNote(home.directory).check(url)
    assert home.store is None


@pytest.fixture(params=["directory", "s3"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Return an empty store that has a URL."""
    if request.param == "directory":
        return DirectoryStore(tmp_path / "mounted")
    server: S3Server = request.getfixturevalue("s3")
    return server.store()


def test_two_homes_cannot_have_one_store(tmp_path: Path, shared: Store) -> None:
    url, one, other = url_of(shared.location()), Home(tmp_path / "one"), Home(tmp_path / "other")
    _bound(one, url)
    with pytest.raises(StateError, match=rf"belongs to the deployment in {one.directory} on .*, not to"):
        StoreNote(other.directory).check(url)
    # As if both had looked before either wrote.
    with pytest.raises(StateError, match="use another store for this one"):
        StoreNote(other.directory).write(url)
    assert other.store is None, "nothing is left of it: another store can be named"
    assert one.store == url


def test_a_home_that_moves_keeps_its_store(tmp_path: Path, shared: Store) -> None:
    url = url_of(shared.location())
    _bound(Home(tmp_path / "before"), url)
    (tmp_path / "before").rename(tmp_path / "after")
    _bound(Home(tmp_path / "after"), url)
    assert Home(tmp_path / "after").store == url


def test_a_crash_before_the_store_knows_its_home_is_made_up_for(tmp_path: Path, shared: Store) -> None:
    url, home = url_of(shared.location()), Home(tmp_path / "home")
    _bound(home, url)
    store_at(url).delete("deployment.json")
    _bound(home, url)
    with pytest.raises(StateError, match="belongs to the deployment in"):
        StoreNote(tmp_path / "other").check(url)


def test_a_store_that_cannot_be_written_to_is_not_noted(
    home: Home, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = s3.store().location()

    def forbid(request: Request, forward: Forward) -> Response:
        return Response("no", 403) if request.method == "PUT" else forward()

    with s3.failing(forbid), pytest.raises(StateError, match=r"cannot write .*deployment\.json"):
        _bound(home, url)
    assert home.store is None
    _bound(home, url)
    with s3.failing(forbid), pytest.raises(StateError, match=r"cannot write"):
        _bound(home, url)
    assert home.store == url, "what was bound before stays"


@pytest.mark.parametrize("content", ["", "{}", '{"store": "s3://b/p"}', "[]"])
def test_a_damaged_note_is_told_of(home: Home, content: str) -> None:
    home.directory.mkdir()
    (home.directory / "store.json").write_text(content)
    with pytest.raises(StateError, match=r"store\.json cannot be read"):
        home.stop_words()


def test_a_damaged_claim_is_told_of(home: Home, tmp_path: Path) -> None:
    DirectoryStore(tmp_path / "mounted").put("deployment.json", b"{}")
    with pytest.raises(StateError, match=r"deployment\.json cannot be read"):
        StoreNote(home.directory).check(url_of(tmp_path / "mounted"))


@pytest.mark.parametrize(
    "url", ["s3://key:secret@bucket/x", "s3://bucket/x?X-Amz-Signature=secret", "ftp://host/x"]
)
def test_a_url_with_credentials_or_of_no_store_is_never_noted(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        url_of(url)
    assert "secret" not in str(caught.value)


def test_a_store_is_named_in_one_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert url_of("s3://bucket/alerts/") == "s3://bucket/alerts"
    assert url_of("mounted") == url_of(tmp_path / "mounted") == url_of(f"file://{tmp_path}/mounted/")
