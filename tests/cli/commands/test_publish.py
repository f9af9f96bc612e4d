from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from typing import Any

import pytest

from ps2stream.deployment.home import Home
from ps2stream.errors import JournalError
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_publications
from waiting import HANG_S


def _published(home: Home) -> list[dict[str, Any]]:
    with Journal.open(home.journal) as journal:
        packets = journal.read(0, journal.last().position)
        return [row for packet in packets for row in decode_publications(packet.publications).to_pylist()]


def _record(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"p{number}", "lat": 1.0, "lon": float(number), "text": f"text {number}", **more}


def test_lines_become_publications_in_their_order(run: Any, home: Home, lines: Any) -> None:
    ran = run("publish", "--file", lines(*(_record(number) for number in range(3))))
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "published 3 publications, rejected 0\n"
    assert _published(home) == [{"seq": number + 1, **_record(number)} for number in range(3)]


def test_a_bad_line_is_told_of_and_the_others_go_on(run: Any, home: Home, lines: Any) -> None:
    name = lines(
        _record(0),
        "oops",
        "",
        _record(1, lat=91),
        _record(2, text=None),
        _record(3, lon="x"),
        _record(4, id=""),
        '{"id": "n", "lat": NaN, "lon": 1, "text": ""}',
        "\udcff",
        _record(5),
    )
    ran = run("publish", "--file", name)
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "ps2stream: line 2: must be JSON; Expecting value at column 1",
        "ps2stream: line 4: lat must lie in [-90, 90]; got 91.0",
        "ps2stream: line 5: text is missing",
        "ps2stream: line 6: lon must be a number; got the string 'x'",
        "ps2stream: line 7: id must be a non-empty string",
        "ps2stream: line 8: lat must lie in [-90, 90]; got nan",
        "ps2stream: line 9: must be UTF-8; byte 1 is not",
        "published 2 publications, rejected 7",
    ]
    assert [row["id"] for row in _published(home)] == ["p0", "p5"]


def test_acknowledgements_give_line_id_and_seq(run: Any, home: Home, lines: Any) -> None:
    ran = run("publish", "--json", "--file", lines(_record(0), "", "oops", {**_record(1), "id": None}))
    assert ran.code == 1
    rejected, first, second = ran.json()
    assert rejected == {"line": 3, "rejected": "must be JSON; Expecting value at column 1"}
    assert first == {"line": 1, "id": "p0", "seq": 1}
    assert uuid.UUID(second.pop("id")).version == 4
    assert second == {"line": 4, "seq": 2, "generated": True}
    assert "published 2 publications (1 with a generated id; --json shows them), rejected 1" in ran.err


def test_a_geojson_file_is_one_document(run: Any, home: Home, lines: Any) -> None:
    document = """{"type": "FeatureCollection", "features": [
      {"type": "Feature", "id": 1, "properties": {"text": "a"},
       "geometry": {"type": "Point", "coordinates": [11, 48]}},
      {"type": "Feature", "id": 2, "properties": {"text": "b"},
       "geometry": {"type": "Point", "coordinates": [11, 98]}}
    ]}"""
    ran = run("publish", "--file", lines(document, name="quakes.geojson"))
    assert ran.code == 1
    assert "feature 2: lat must lie in [-90, 90]; got 98.0" in ran.err
    assert _published(home) == [{"seq": 1, "id": "1", "lat": 48.0, "lon": 11.0, "text": "a"}]
    assert run("publish", "--format", "lines", "--file", lines(document, name="quakes.geojson")).code == 1


def test_an_empty_input_is_fine_and_makes_the_journal(run: Any, home: Home, lines: Any) -> None:
    ran = run("publish", "--file", lines())
    assert (ran.code, ran.err) == (0, "published 0 publications, rejected 0\n")
    assert _published(home) == []


def test_a_missing_file_is_bad_input_and_makes_no_journal(run: Any, home: Home) -> None:
    ran = run("publish", "--file", "nowhere.jsonl")
    assert ran.code == 3
    assert "nowhere.jsonl" in ran.err
    assert not home.directory.exists()


def test_what_the_journal_does_not_take_is_told(
    run: Any, lines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(journal: Journal, events: object) -> None:
        raise JournalError("no space left on the disk")

    monkeypatch.setattr(Journal, "append", fail)
    ran = run("publish", "--json", "--file", lines(_record(0), _record(1)))
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.splitlines() == [
        "ps2stream: 2 publications more came and could not be kept",
        "published 0 publications, rejected 0",
        "ps2stream: no space left on the disk",
    ]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_slow_pipe_is_acknowledged_soon_and_an_interrupt_loses_no_whole_line(
    home: Home, number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-m", "ps2stream", "publish", "--json", "--home", str(home.directory)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"id": "a", "lat": 1, "lon": 1, "text": ""}\n')
        process.stdin.flush()
        assert process.stdout.readline() == '{"line": 1, "id": "a", "seq": 1}\n'
        process.stdin.write('{"id": "b", "lat": 1, "lon": 1, "text": ""}\n{"id": "c", ')
        process.stdin.flush()
        time.sleep(0.1)
        process.send_signal(number)
        out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == code
    assert out == '{"line": 2, "id": "b", "seq": 2}\n'
    assert err.splitlines() == [
        "ps2stream: interrupted; the last line was not finished and is not published",
        "published 2 publications, rejected 0",
    ]
    assert [row["id"] for row in _published(home)] == ["a", "b"]


@pytest.mark.parametrize(("option", "name"), [("--after", "after"), ("--as-of", "as_of")])
def test_a_journal_has_no_place_in_the_order_to_ask_for(
    run: Any, home: Home, lines: Any, option: str, name: str
) -> None:
    ran = run("publish", "--file", lines(_record(0)), option, "7")
    assert ran.code == 3
    assert f"{name} is for deployments of 'ps2stream run --engine realtime'" in ran.err
    assert not home.journal.exists() or _published(home) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--after", "soon"], "argument --after: invalid int value: 'soon'"),
        (["--after", "1", "--as-of", "2"], "argument --as-of: not allowed with argument --after"),
    ],
)
def test_what_is_no_place_in_the_order_is_wrong_usage(
    run: Any, home: Home, lines: Any, words: list[str], message: str
) -> None:
    ran = run("publish", "--file", lines(_record(0)), *words)
    assert ran.code == 2
    assert message in ran.err
    assert not home.directory.exists()
