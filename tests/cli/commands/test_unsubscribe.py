from __future__ import annotations

from typing import Any

from ps2stream.deployment.home import Home
from ps2stream.journal import Journal


def _subscribe(run: Any, *ids: str) -> None:
    for subscription_id in ids:
        assert run("subscribe", subscription_id, "rain", "--region", "0,0,1,1").code == 0


def test_a_subscription_ends_at_a_seq(run: Any) -> None:
    _subscribe(run, "a", "b")
    ran = run("unsubscribe", "a")
    assert (ran.code, ran.out, ran.err) == (0, "unsubscribed 'a' at seq 3\n", "")
    assert [row["id"] for row in run("subscriptions", "--json").json()] == ["b"]


def test_an_unknown_id_is_told_of_and_the_others_are_ended(run: Any) -> None:
    _subscribe(run, "a", "b")
    ran = run("unsubscribe", "--json", "b", "nope", "a", "b")
    assert ran.code == 1
    assert ran.json() == [{"id": "b", "seq": 3}, {"id": "a", "seq": 4}]
    assert ran.err == "ps2stream: no live subscription has the id 'nope'\n"


def test_what_is_not_known_is_not_appended(run: Any, home: Home) -> None:
    _subscribe(run, "a")
    assert run("unsubscribe", "a").code == 0
    assert run("unsubscribe", "a").code == 1
    with Journal.open(home.journal) as journal:
        assert journal.last().seq == 2


def test_without_a_journal_it_is_bad_state(run: Any) -> None:
    ran = run("unsubscribe", "a")
    assert ran.code == 3
    assert "no journal at" in ran.err
