"""A path or a URL becomes a store, and no message repeats what could be a credential."""

from __future__ import annotations

from pathlib import Path

import pytest

from ps2stream import extras
from ps2stream.errors import ConfigError, MissingExtraError
from ps2stream.store.directory import DirectoryStore
from ps2stream.store.object_store import ObjectStore
from ps2stream.store.urls import is_url, redacted, store_at


def test_a_path_and_a_file_url_are_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert store_at("a/b") == store_at(Path("a/b")) == DirectoryStore(tmp_path / "a" / "b")
    assert store_at(f"file://{tmp_path}/a%20b") == DirectoryStore(tmp_path / "a b")
    assert store_at(f"file://localhost{tmp_path}") == DirectoryStore(tmp_path)
    assert not is_url("a:b")
    assert not is_url(Path("s3://b/c"))
    assert is_url("s3://b/c")


@pytest.mark.parametrize("url", ["s3://bucket/a/b", "gs://bucket/a/b", "az://container/a/b"])
def test_the_urls_of_object_stores_are_object_stores(url: str) -> None:
    assert store_at(url) == store_at(f"{url}/") == ObjectStore(url)
    assert store_at(url).under("log").location("c") == f"{url}/log/c"


@pytest.mark.parametrize("url", ["ftp://bucket/a", "http://bucket/a", "S4://x", "memory://x"])
def test_an_unknown_scheme_is_an_error_that_names_the_known_ones(url: str) -> None:
    with pytest.raises(ConfigError, match="must begin with one of file://, s3://, gs://, az://; got"):
        store_at(url)


@pytest.mark.parametrize(
    "url",
    [
        "s3://me:SECRET@bucket/a",
        "s3://SECRET@bucket/a",
        "s3://me:SEC/RET@bucket/a",
        "s3://bucket/a?X-Amz-Signature=SECRET",
        "az://container/a?sv=1&sig=SECRET",
        "s3://bucket/a#SECRET",
        "ftp://me:SECRET@host/a",
        "file://SECRET/a",
        "s3://",
        "s3:///a",
    ],
)
def test_a_url_with_more_than_a_place_is_an_error_that_does_not_repeat_it(url: str) -> None:
    with pytest.raises(ConfigError, match="the URL of a") as raised:
        store_at(url)
    assert "SEC" not in str(raised.value)
    assert "RET" not in str(raised.value)


def test_a_missing_extra_is_told_before_anything_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "obstore")
    with pytest.raises(MissingExtraError, match=r"a store at s3:// needs obstore: .*ps2stream\[cluster\]"):
        store_at("s3://bucket/a")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("PUT http://me:SECRET@host:9/b/k in 3ms", "PUT http://...@host:9/b/k in 3ms"),
        ("GET https://a.net/c?sv=1&sig=SECRET: 403", "GET https://a.net/c?... 403"),
        ('url "https://SECRET@a.net/c#SECRET"', 'url "https://...@a.net/c?..."'),
        ("no URL at all? none", "no URL at all? none"),
        ("s3://bucket/a@b is missing", "s3://bucket/a@b is missing"),
    ],
)
def test_messages_are_shown_without_users_and_queries(message: str, shown: str) -> None:
    assert redacted(message) == shown
