"""What the command line does with a home, from Python."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ps2stream as ps2
from cli.jobs import Job
from ps2stream.balance.adjustments import Adjustment
from ps2stream.deployment.home import Home
from ps2stream.deployment.store_note import StoreNote, url_of
from ps2stream.model.schemas import MATCHES
from ps2stream.state.host_files import HostFiles
from ps2stream.state.lease import Lease
from ps2stream.state.state import State
from ps2stream.store.urls import store_at
from waiting import HANG_S

MUNICH = ps2.Region(11.3, 48.0, 11.8, 48.3)
FIRE = ps2.Subscription("fires", "fire AND smoke", MUNICH)
SMOKE = ps2.Publication("p1", "Fire and smoke!", lat=48.1, lon=11.5)
SETTINGS = ps2.Settings(n_workers=2, stop_words=("the",))


@pytest.fixture
def deployment(any_home: Home) -> ps2.Deployment:
    return ps2.Deployment(any_home.directory)


def test_what_is_published_and_subscribed_is_matched_and_delivered(deployment: ps2.Deployment) -> None:
    assert deployment.subscribe(FIRE) == ps2.Receipt(("fires",), (1,))
    assert deployment.publish(SMOKE) == ps2.Receipt(("p1",), (2,))
    assert deployment.matches().num_rows == 0
    job = Job(deployment.home, SETTINGS)
    job.process()
    assert deployment.matches().schema == MATCHES
    assert deployment.matches().to_pylist() == [ps2.Match("fires", 1, "p1", 2)._asdict()]
    assert deployment.matches("nobody").num_rows == 0
    assert deployment.matches(since=3).num_rows == 0
    assert deployment.matches("fires", since=2).num_rows == 1


def test_live_subscriptions_are_listed_by_id_and_by_point(deployment: ps2.Deployment) -> None:
    fiji = ps2.Subscription("surf", "swell", ps2.Region(177.0, -19.0, -178.0, -16.0))
    deployment.subscribe([FIRE, fiji])
    assert deployment.subscriptions().column("id").to_pylist() == ["fires", "surf"]
    assert deployment.subscriptions(["surf", "nobody"]).column("seq").to_pylist() == [2]
    assert deployment.subscriptions("surf").column("seq").to_pylist() == [2], "not its letters"
    assert deployment.subscriptions(at=(-17.0, 180.0)).column("id").to_pylist() == ["surf"]
    assert deployment.subscriptions(at=(0.0, 0.0)).num_rows == 0
    with pytest.raises(ps2.RegionError, match=r"lat must lie in"):
        deployment.subscriptions(at=(91.0, 0.0))


def test_an_end_needs_a_live_subscription(deployment: ps2.Deployment) -> None:
    deployment.subscribe([FIRE, ps2.Subscription("b", "rain", MUNICH)])
    with pytest.raises(ps2.RejectedError, match="no live subscription has the id 'nope'"):
        deployment.unsubscribe(["fires", "nope"])
    assert deployment.subscriptions().num_rows == 2
    receipt = deployment.unsubscribe(["fires", "nope", "fires"], on_rejected="skip")
    assert (receipt.ids, receipt.seqs) == (("fires",), (3,))
    assert [each.id for each in receipt.rejected] == ["nope"]
    assert deployment.unsubscribe("b").seqs == (4,)
    assert deployment.subscriptions().num_rows == 0


def test_matches_are_followed_as_they_come(deployment: ps2.Deployment) -> None:
    deployment.subscribe(FIRE)
    deployment.publish(SMOKE)
    job = Job(deployment.home, SETTINGS)
    job.process()
    assert list(deployment.follow(timeout_s=0.0)) == [ps2.Match("fires", 1, "p1", 2)]
    # What is new counts from the call, not from when the first one is asked for.
    new = deployment.follow("fires", new=True, poll_s=0.01)
    deployment.publish({"id": "p2", "lat": 48.2, "lon": 11.4, "text": "smoke, fire"})
    later = threading.Timer(0.1, job.process)
    later.start()
    assert next(new) == ps2.Match("fires", 1, "p2", 3)
    later.join()
    assert _closed(new)


def _closed(generator: Iterator[ps2.Match]) -> bool:
    generator.close()  # type: ignore[attr-defined]
    return next(generator, None) is None


def test_values_and_ids_are_explained(deployment: ps2.Deployment) -> None:
    deployment.subscribe(FIRE)
    deployment.publish(SMOKE)
    assert deployment.explain("p1", "fires").matches
    assert deployment.explain(SMOKE, FIRE).matches
    far = deployment.explain(ps2.Publication("x", "smoke", lat=0.0, lon=0.0), "fires")
    assert not far.matches
    assert not far.is_inside
    assert [clause.missing for clause in far.clauses] == [("fire",)]
    with pytest.raises(ps2.JournalError, match="no publication with the id 'nope'"):
        deployment.explain("nope", "fires")
    with pytest.raises(ps2.JournalError, match="no subscription with the id 'nope'"):
        deployment.explain("p1", "nope")


def test_the_plan_of_the_job_takes_part_in_an_explanation(deployment: ps2.Deployment) -> None:
    deployment.subscribe(FIRE)
    deployment.publish(SMOKE)
    assert deployment.explain("p1", "fires").cell is None
    Job(deployment.home, SETTINGS).process()
    cell = deployment.explain("p1", "fires").cell
    assert cell is not None
    assert cell.n_workers == 2


def test_the_stop_words_of_the_job_count(deployment: ps2.Deployment) -> None:
    deployment.publish(SMOKE)
    Job(deployment.home, SETTINGS)
    with pytest.raises(ps2.RejectedError, match=r"^rejected: subscribe 'x': .*stop words"):
        deployment.subscribe(ps2.Subscription("x", "the", MUNICH))


def test_the_status_and_the_adjustments_are_those_of_the_job(deployment: ps2.Deployment) -> None:
    with pytest.raises(ps2.StateError, match="no job was started"):
        deployment.status()
    with pytest.raises(ps2.StateError, match="no job was started"):
        deployment.adjustments()
    deployment.subscribe(FIRE)
    job = Job(deployment.home, SETTINGS)
    state, has_lease = job.state, deployment.home.store is not None
    status = deployment.status()
    # A lock that nobody holds; a lease that was renewed when it was acquired.
    assert (status["running"], status["age_s"]) == (has_lease, None)
    assert 0.0 <= status.get("lease_age_s", 0.0) < HANG_S
    job.stop()
    told = {"lease_age_s": None} if has_lease else {}
    assert deployment.status() == {"running": False, "age_s": None, **told}
    state.mailbox.write_status({"at": 1.0, "sigma": 1.5})
    status = deployment.status()
    assert (status["running"], status["sigma"]) == (False, 1.5)
    assert status["age_s"] > 1e9
    state.mailbox.write_status({"at": "yesterday"})
    with pytest.raises(ps2.StateError, match="status of the job cannot be read"):
        deployment.status()
    assert deployment.board() == {"running": False, "age_s": None}
    state.mailbox.write_board({"at": 1.0, "engine": "inline"})
    board = deployment.board()
    assert (board["running"], board["engine"]) == (False, "inline")
    assert board["age_s"] > 1e9
    state.mailbox.write_board({"engine": "inline"})
    with pytest.raises(ps2.StateError, match="board of the job cannot be read"):
        deployment.board()
    record = Adjustment("local", 3, "now", "because", 1, 1, (1.0, 2.0))
    state.adjustments.write(3, record)
    assert deployment.adjustments() == [record]


def test_what_another_driver_decides_is_read_on(any_home: Home) -> None:
    deployment = ps2.Deployment(any_home.directory)
    deployment.subscribe([FIRE, ps2.Subscription("b", "rain", MUNICH)])
    job = Job(any_home, SETTINGS)
    job.process()
    deployment.unsubscribe("b")
    deployment.publish(SMOKE)
    if any_home.store is not None:
        job.start_again()
    job.process()
    job.snapshot()
    job.prune()
    assert deployment.subscriptions().column("id").to_pylist() == ["fires"]
    assert deployment.explain("p1", "fires").cell is not None
    assert deployment.matches().num_rows == 1


def test_a_home_with_a_state_can_be_brought_into_a_store(tmp_path: Path) -> None:
    home, mounted = Home(tmp_path / "home"), tmp_path / "mounted"
    deployment = ps2.Deployment(home.directory)
    deployment.subscribe(FIRE)
    deployment.publish(SMOKE)
    Job(home, SETTINGS).process()
    deployment.subscribe(ps2.Subscription("b", "rain", MUNICH))
    plan = deployment.explain("p1", "fires").cell
    mounted.mkdir()
    for part in ("state", "out"):
        (home.directory / part).rename(mounted / part)
    StoreNote(home.directory).check(url_of(mounted))
    StoreNote(home.directory).write(url_of(mounted))
    store = store_at(home.state)
    with Lease(store, "driver").held() as lease:
        state = State(store, HostFiles(tmp_path / "files")).taken_over(lease).open(SETTINGS)
        assert state.ledger.last_seq() == 2
        assert deployment.status()["running"] is True
        assert deployment.subscriptions().column("id").to_pylist() == ["fires", "b"]
        assert deployment.explain("p1", "fires").cell == plan
        assert deployment.matches().num_rows == 1


@pytest.mark.parametrize("kind", [str, Path])
def test_a_later_change_of_directory_changes_nothing(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    deployment = ps2.Deployment(kind("alerts"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    deployment.subscribe(FIRE)
    assert (tmp_path / "alerts" / "journal").is_dir()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert repr(deployment) == f"Deployment({str(tmp_path / 'alerts')!r})"


def test_a_deployment_that_does_not_exist_has_no_matches_to_read(tmp_path: Path) -> None:
    mistyped = ps2.Deployment(tmp_path / "nope")
    for read in (mistyped.matches, mistyped.follow):
        with pytest.raises(ps2.StateError, match="there is no deployment in"):
            read()
    with pytest.raises(ps2.JournalError, match="no journal at"):
        mistyped.subscriptions()
    assert not (tmp_path / "nope").exists()
