from __future__ import annotations

import json
from typing import Any

import pytest

from ps2stream.deployment.home import Home
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_updates
from ps2stream.model.space import Region
from ps2stream.registry.segments import BOUNDS


def _updates(home: Home) -> list[dict[str, Any]]:
    if not home.journal.exists():
        return []
    with Journal.open(home.journal) as journal:
        packets = journal.read(0, journal.last().position)
        return [row for packet in packets for row in decode_updates(packet.updates).to_pylist()]


def test_a_subscription_gets_a_seq(run: Any, home: Home) -> None:
    ran = run("subscribe", "q1", "fire OR smoke", "--region", "-11.3,48,11.8,48.3")
    assert (ran.code, ran.out, ran.err) == (0, "subscribed 'q1' at seq 1\n", "")
    assert run("subscribe", "q2", "rain", "--region", "0,0,1,1", "--json").json() == [{"id": "q2", "seq": 2}]
    first = _updates(home)[0]
    assert (first["op"], first["id"], first["expression"]) == ("subscribe", "q1", "fire OR smoke")
    assert [first[name] for name in BOUNDS] == [-11.3, 48.0, 11.8, 48.3]


def test_a_square_around_a_point_may_cross_the_antimeridian(run: Any, home: Home) -> None:
    assert run("subscribe", "q", "surf", "--around", "-17.8,179.9", "--km", "200").code == 0
    region = Region(*(_updates(home)[0][name] for name in BOUNDS))
    assert region.contains(-179.9, -17.8)
    assert not region.contains(0.0, -17.8)


def test_an_error_in_the_expression_is_pointed_at(run: Any, home: Home) -> None:
    ran = run("subscribe", "q", "fire AND (smoke OR", "--region", "0,0,1,1")
    assert ran.code == 3
    assert ran.err.splitlines() == [
        "ps2stream: 'OR' needs a keyword or a parenthesis after it at position 16 of 'fire AND (smoke OR'",
        "  fire AND (smoke OR",
        "                  ^",
    ]
    assert _updates(home) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["q", "x", "--region", "0,5,1,1"], "the region must have min_lat <= max_lat; got 5.0 > 1.0"),
        (["q", "x", "--region", "0,0,nan,1"], "max_lon of the region must lie in"),
        (["", "x", "--region", "0,0,1,1"], "must be a non-empty string"),
        (["q", "x", "--around", "0,0", "--km", "-1"], "must be a number of km above 0"),
        (["q", "x", "--around", "95,0", "--km", "1"], "must lie on the map"),
    ],
)
def test_bad_input_is_3_and_nothing_is_appended(run: Any, home: Home, words: list[str], message: str) -> None:
    ran = run("subscribe", *words)
    assert ran.code == 3
    assert message in ran.err
    assert _updates(home) == []


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["q"],
        ["q", "x"],
        ["q", "x", "--region", "1,2,3"],
        ["q", "x", "--region", "0,0,1,1", "--around", "0,0"],
        ["q", "x", "--around", "0,0"],
        ["q", "x", "--region", "0,0,1,1", "--km", "5"],
        ["q", "x", "--file", "-"],
        ["q", "a\udcff", "--region", "0,0,1,1"],
    ],
)
def test_wrong_usage_is_2(run: Any, words: list[str]) -> None:
    assert run("subscribe", *words).code == 2


def test_a_subscription_of_stop_words_only_is_refused_once_the_job_has_them(
    run: Any, home: Home, lines: Any
) -> None:
    (home.directory / "state").mkdir(parents=True)
    (home.directory / "state" / "job.json").write_text(json.dumps({"stop_words": ["the"]}))
    assert "consists only of stop words" in run("subscribe", "q", "The", "--region", "0,0,1,1").err
    name = lines({"id": "q", "expression": "The", "region": [0, 0, 1, 1]})
    assert "consists only of stop words" in run("subscribe", "--file", name).err
    assert _updates(home) == []


def test_many_come_from_lines_and_bad_ones_are_told_of(run: Any, home: Home, lines: Any) -> None:
    area = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    name = lines(
        {"id": "a", "expression": "rain", "region": [0, 0, 1, 1]},
        {"id": "b", "expression": "rain)", "region": [0, 0, 1, 1]},
        {"id": "c", "expression": "rain", "region": [0, 9, 1, 1]},
        {"expression": "rain", "region": [0, 0, 1, 1]},
        {"id": "e", "region": [0, 0, 1, 1]},
        {"type": "Feature", "id": "f", "properties": {"expression": "rain"}, "geometry": area},
    )
    ran = run("subscribe", "--json", "--file", name)
    assert ran.code == 1
    assert ran.json()[-2:] == [{"line": 1, "id": "a", "seq": 1}, {"line": 6, "id": "f", "seq": 2}]
    assert ran.err.splitlines() == [
        "ps2stream: line 2: ')' was never opened at position 4 of 'rain)'",
        "  rain)",
        "      ^",
        "ps2stream: line 3: the region must have min_lat <= max_lat; got 9.0 > 1.0",
        "ps2stream: line 4: id must be a non-empty string",
        "ps2stream: line 5: expression is missing",
        "subscribed 2 subscriptions, rejected 4",
    ]
    assert [row["id"] for row in _updates(home)] == ["a", "f"]
