"""A plan answers who owns a term in a cell, and comes back from disk whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ps2stream.arrays import Array
from ps2stream.errors import StateError
from ps2stream.model.space import WORLD, Grid
from ps2stream.partitioning.plan import H1, Plan, owner, owners_of_cells, owners_of_terms, workers_of
from ps2stream.text.frequencies import Frequencies

pytestmark = pytest.mark.kernel

HIGH = 1 << 40


def _text_plan() -> Plan:
    """Two cells of a worker, two of tables; the second table holds no term at all."""
    h1 = H1(
        np.array([2, -1, -2, 0], np.int32),
        np.array([0, 3, 3]),
        np.array([5, 9, (1 << 64) - 1], np.uint64),
        np.array([1, 0, 3], np.int32),
        np.array([0, 2, 3]),
        np.array([3, 1, 2], np.int32),
    )
    frequencies = Frequencies(np.array([5, 9], np.uint64), np.array([4, 1]))
    return Plan(7, "by hand", 4, Grid.over(WORLD, 1), h1, frequencies)


@pytest.mark.parametrize(
    ("cell", "term", "worker"),
    [
        (0, 5, 2),
        (3, 5, 0),
        (1, 5, 1),
        (1, 9, 0),
        (1, (1 << 64) - 1, 3),
        (1, 6, 3),  # not in the table, and the high half of its hash is even
        (1, 1 << 32, 1),  # odd
        (1, HIGH + 6, 3),
        (2, 5, 2),
        (2, 1 << 32, 2),
    ],
)
def test_the_owner_is_the_cells_or_the_terms_or_a_default_worker(cell: int, term: int, worker: int) -> None:
    assert owner(_text_plan().h1, cell, np.uint64(term)) == worker


def test_a_plan_finds_the_cell_of_a_point_by_itself() -> None:
    plan = _text_plan()
    assert [plan.owner(lon, lat, 5) for lon, lat in ((-1, -1), (1, -1), (-1, 1), (1, 1))] == [2, 1, 2, 0]


def test_a_plan_of_space_only_has_one_owner_a_cell() -> None:
    h1 = owners_of_cells(np.array([1, 0, 1, 0], np.int32))
    assert [owner(h1, cell, np.uint64(term)) for cell in range(4) for term in (0, HIGH)] == [
        1,
        1,
        0,
        0,
        1,
        1,
        0,
        0,
    ]


def test_a_plan_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    plan = _text_plan()
    plan.save(path)
    plan.save(path)
    loaded = Plan.load(path)
    assert (loaded.number, loaded.partitioner, loaded.n_workers, loaded.grid) == (7, "by hand", 4, plan.grid)
    saved_arrays: list[Array] = [*plan.h1, *plan.frequencies]
    found_arrays: list[Array] = [*loaded.h1, *loaded.frequencies]
    for saved, found in zip(saved_arrays, found_arrays, strict=True):
        np.testing.assert_array_equal(found, saved)
        assert found.dtype == saved.dtype
    assert [path.name for path in tmp_path.iterdir()] == ["plan.npz"]


def test_a_damaged_plan_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    _text_plan().save(path)
    whole = path.read_bytes()
    for size in (*range(0, len(whole), 151), len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(StateError, match=r"plan\.npz cannot be read"):
            Plan.load(path)
    path.write_bytes(b"not a plan")
    with pytest.raises(StateError, match=r"plan\.npz cannot be read"):
        Plan.load(path)
    for at in range(60, len(whole), 211):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            loaded = Plan.load(path)
        except StateError:
            continue
        assert loaded.n_workers == 4, "what is let through has not changed: zip keeps checksums of contents"


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("cell_owner", np.array([2, -1, -2], np.int32)),  # fewer cells than the grid has
        ("cell_owner", np.array([2, -1, -3, 0], np.int32)),  # no such table
        ("cell_owner", np.array([4, -1, -2, 0], np.int32)),  # no such worker
        ("table_workers", np.array([1, 0, 9], np.int32)),
        ("table_workers", np.array([1, 0], np.int32)),
        ("table_offsets", np.array([0, 4, 3])),
        ("default_offsets", np.array([0, 3, 3])),  # a table without a worker for unknown terms
        ("default_workers", np.array([3, 1, -1], np.int32)),
    ],
)
def test_a_plan_whose_parts_do_not_fit_is_an_error(tmp_path: Path, part: str, value: Array) -> None:
    plan = _text_plan()
    replace(plan, h1=plan.h1._replace(**{part: value})).save(tmp_path / "plan.npz")
    with pytest.raises(StateError, match="do not fit the rest of it"):
        Plan.load(tmp_path / "plan.npz")


def test_a_plan_for_fewer_workers_than_it_names_is_an_error(tmp_path: Path) -> None:
    replace(_text_plan(), n_workers=3).save(tmp_path / "plan.npz")
    with pytest.raises(StateError, match="its workers do not fit"):
        Plan.load(tmp_path / "plan.npz")


def test_a_missing_plan_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot be read"):
        Plan.load(tmp_path / "plan.npz")


def test_a_file_of_other_arrays_is_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "plan.npz", about=np.array("{}"))
    with pytest.raises(StateError, match="cannot be read"):
        Plan.load(tmp_path / "plan.npz")


def test_the_workers_of_a_table_are_those_of_its_terms_of_all_other_terms_and_their_new_names() -> None:
    terms, workers = np.array([5, 9], np.uint64), np.array([2, 1], np.int32)
    h1 = owners_of_terms(4, terms, workers, 4)
    assert workers_of(h1, 0).tolist() == [0, 1, 2, 3]
    few = h1._replace(default_offsets=np.array([0, 1]), default_workers=np.array([2], np.int32))
    assert workers_of(few, 0).tolist() == [1, 2]
    renames = np.array([[0, 3, 0, 0]], np.int32)
    renamed = few._replace(renamed_tables=np.zeros(1, np.int32), renames=renames)
    assert workers_of(renamed, 1).tolist() == [0, 3]
