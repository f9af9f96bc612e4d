"""Raw rows come back as they were written, and a file that is there is whole."""

from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq
import pytest

from ps2stream.errors import StateError
from ps2stream_bench.results import Column, Results, table


def test_rows_of_all_cases_come_back_with_all_their_fields(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for n in (1, 2):
        path = results.file_of("hybrid", "tiny", {"workers": n, "seed": 1})
        results.write(path, [{"workers": n, "rate": 1.5 * n}, {"workers": n, "only": f"here {n}"}])
    rows = results.read("hybrid", "tiny")
    assert sorted(rows, key=str) == sorted(
        [
            {"workers": 1, "rate": 1.5, "only": None},
            {"workers": 1, "rate": None, "only": "here 1"},
            {"workers": 2, "rate": 3.0, "only": None},
            {"workers": 2, "rate": None, "only": "here 2"},
        ],
        key=str,
    )
    assert results.read("hybrid", "small") == []


def test_integers_of_one_case_and_floats_of_another_go_together(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for n, value in enumerate([1, 2.5]):
        results.write(results.file_of("f", "tiny", {"n": n}), [{"value": value}])
    assert sorted(row["value"] for row in results.read("f", "tiny")) == [1, 2.5]


def test_cases_that_differ_in_anything_have_files_of_their_own(tmp_path: Path) -> None:
    results = Results(tmp_path)
    identities = [{"a": 1, "seed": 1}, {"a": 1, "seed": 2}, {"a": 2, "seed": 1}, {"b": 1, "seed": 1}]
    assert len({results.file_of("f", "tiny", identity) for identity in identities}) == len(identities)
    assert results.file_of("f", "tiny", {"a": 1, "b": 2}) == results.file_of("f", "tiny", {"a": 1, "b": 2})


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Results(tmp_path)
    path = results.file_of("f", "tiny", {"a": 1})

    def fail(table: object, where: BinaryIO, **options: object) -> None:
        where.write(b"half a file")
        raise OSError("no space left")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(StateError, match="no space left"):
        results.write(path, [{"a": 1}])
    assert list(path.parent.iterdir()) == []


def test_a_table_shows_what_is_not_known_as_a_dash() -> None:
    columns = [Column("name", "name"), Column("rate", "rate", ",.1f")]
    shown = table([{"name": "a", "rate": 1234.56}, {"name": "b", "rate": None}, {"name": "c"}], columns)
    assert shown.splitlines() == ["| name | rate |", "|---|---|", "| a | 1,234.6 |", "| b | - |", "| c | - |"]
