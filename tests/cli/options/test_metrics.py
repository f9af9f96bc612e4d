"""``--metrics`` names a port of this host, or of another address if told so."""

from __future__ import annotations

import argparse
import urllib.request

import pytest

from ps2stream.cli.options import metrics
from ps2stream.cli.options.metrics import Address, add_metrics, address, metrics_served
from ps2stream.errors import ConfigError, MissingExtraError


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_metrics(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9464", Address("127.0.0.1", 9464)),
        ("0", Address("127.0.0.1", 0)),
        ("0.0.0.0:9464", Address("0.0.0.0", 9464)),
        ("metrics.example.org:80", Address("metrics.example.org", 80)),
        ("[::1]:9464", Address("::1", 9464)),
    ],
)
def test_an_address_is_a_port_with_or_without_a_host(text: str, expected: Address) -> None:
    assert address(text) == expected


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "65536", ":9464", "host:", "::1:9464", "a b:1", "1:2:3", "٣"]
)
def test_anything_else_is_wrong_usage(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"must be PORT or HOST:PORT"):
        address(text)


def test_unless_asked_for_nothing_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    with metrics_served(parsed(), "inline") as board:
        assert board.engine == "inline"
    assert capsys.readouterr().err == ""


def test_where_it_is_served_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with metrics_served(parsed("--metrics", "0"), "inline"):
        url = capsys.readouterr().err.removeprefix("metrics at ").strip()
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200


def test_a_host_that_is_none_is_told_of() -> None:
    with pytest.raises(ConfigError, match=r"metrics cannot be served at no-such-host\.invalid:0: "):
        metrics_served(parsed("--metrics", "no-such-host.invalid:0"), "inline").__enter__()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(what: str, extra: str) -> None:
        raise MissingExtraError(what, ["prometheus_client"], extra)

    monkeypatch.setattr(metrics, "require", missing)
    with pytest.raises(MissingExtraError, match=r"--metrics needs .*ps2stream\[metrics\]"):
        metrics_served(parsed("--metrics", "0"), "inline").__enter__()
