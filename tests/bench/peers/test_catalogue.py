from __future__ import annotations

import pytest

from ps2stream_bench.peers import catalogue
from ps2stream_bench.peers.catalogue import NAMES, unavailable


def test_what_needs_nothing_but_the_project_can_always_run() -> None:
    assert unavailable("PS2Stream inline") is None
    assert unavailable("numpy scan") is None


def test_a_peer_that_cannot_run_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert unavailable("shapely STRtree") == "shapely STRtree: shapely is not installed (pip install shapely)"
    for name in ("Spark SQL", "PS2Stream microbatch"):
        reason = unavailable(name)
        assert reason is not None
        assert reason.startswith(f"{name}: Spark needs Java")


def test_ours_come_first() -> None:
    assert [name.startswith("PS2Stream") for name in NAMES] == [True, True, False, False, False, False]
