"""Whether a job runs: a lock is sure, a lease is as good as clocks agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from ps2stream.deployment import job_life as life
from ps2stream.deployment.home import Home, newest_state
from ps2stream.deployment.job_life import JobLife, job_life
from ps2stream.deployment.store_note import StoreNote, url_of
from ps2stream.state.lease import SignOfLife
from ps2stream.state.state import State


def _life(home: Home) -> JobLife:
    return job_life(home, newest_state(home.state))


def test_on_one_host_it_is_the_lock(home: Home) -> None:
    assert _life(home) == JobLife(is_running=False)
    with State.at(home.state).host.lock.held():
        assert _life(home) == JobLife(is_running=True)
    assert _life(home) == JobLife(is_running=False)


@pytest.mark.parametrize(
    ("ago_s", "is_running"), [(0.0, True), (15.0, True), (60.0, False), (-15.0, True), (-60.0, False)]
)
def test_in_a_store_it_is_the_lease(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ago_s: float, is_running: bool
) -> None:
    StoreNote(home.directory).write(url_of(tmp_path / "mounted"))
    assert _life(home) == JobLife(is_running=False, has_lease=True)
    monkeypatch.setattr("time.time", lambda: 1_000.0)
    sign = SignOfLife(3, is_let_go=False, renewed_at=1_000.0 - ago_s)
    monkeypatch.setattr(life, "last_sign", lambda store: sign)
    assert _life(home) == JobLife(is_running, has_lease=True, lease_age_s=max(0.0, ago_s))
