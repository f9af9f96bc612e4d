"""Arrays are the same on the heap and in files, and a full or damaged disk is reported."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from disks import small_disk
from ps2stream.arrays import (
    HeapStorage,
    Int64s,
    MappedStorage,
    Ragged,
    Storage,
    UInt32s,
    create_struct,
    frozen,
    n_bytes,
    open_struct,
    table_size,
)
from ps2stream.errors import StateError


class Pair(NamedTuple):
    head: Int64s
    data: UInt32s


DTYPES = {"head": np.int64, "data": np.uint32}


@pytest.fixture(params=["heap", "mapped"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return HeapStorage() if request.param == "heap" else MappedStorage(tmp_path / "arrays")


def test_a_new_array_is_zero_and_can_be_written(storage: Storage) -> None:
    array = storage.create("numbers", np.int64, 5)
    assert array.tolist() == [0] * 5
    array[:] = 7
    assert storage.create("numbers", np.int64, 3).tolist() == [0] * 3
    assert array.tolist() == [7] * 5, "who holds the old array keeps it"


def test_a_grown_array_starts_with_what_was_there_and_goes_on_with_zeros(storage: Storage) -> None:
    array = storage.create("numbers", np.uint32, 1)
    for size in (2, 3, 1000, 100_000):
        array[:] = np.arange(1, len(array) + 1)
        longer = storage.grow("numbers", array, size)
        assert len(longer) == size
        assert longer[: len(array)].tolist() == array.tolist()
        assert not longer[len(array) :].any()
        array = longer


def test_growing_one_array_leaves_the_others_alone(storage: Storage) -> None:
    pair = create_struct(Pair, DTYPES, {"head": 2, "data": 3}, storage)
    pair.data[:] = 5
    storage.grow("head", pair.head, 100)
    assert pair.data.tolist() == [5, 5, 5]
    assert n_bytes(pair) == 2 * 8 + 3 * 4


def test_one_process_sees_what_another_maps(tmp_path: Path) -> None:
    written = MappedStorage(tmp_path).create("numbers", np.int64, 4)
    shared = MappedStorage(tmp_path).open("numbers", np.int64, shared=True)
    private = MappedStorage(tmp_path).open("numbers", np.int64, shared=False)
    written[1] = 8
    assert shared.tolist() == private.tolist() == [0, 8, 0, 0]
    shared[2] = 9
    assert written.tolist() == [0, 8, 9, 0]
    private[3] = 1
    assert written.tolist() == [0, 8, 9, 0], "a reader cannot spoil the index"


def test_an_array_of_nothing_can_be_mapped(tmp_path: Path) -> None:
    assert len(MappedStorage(tmp_path).create("numbers", np.int64, 0)) <= 1
    assert len(MappedStorage(tmp_path).open("numbers", np.int64, shared=True)) <= 1


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"numbers\.array cannot be mapped"):
        MappedStorage(tmp_path).open("numbers", np.int64, shared=True)


@pytest.mark.parametrize("size", [0, 1, 7, 13])
def test_a_file_that_is_no_array_is_reported(tmp_path: Path, size: int) -> None:
    (tmp_path / "numbers.array").write_bytes(b"x" * size)
    with pytest.raises(StateError, match=r"numbers\.array cannot be mapped"):
        MappedStorage(tmp_path).open("numbers", np.int64, shared=True)


def test_a_struct_is_opened_only_if_its_arrays_are_as_long_as_needed(tmp_path: Path) -> None:
    storage = MappedStorage(tmp_path)
    pair = create_struct(Pair, DTYPES, {"head": 1, "data": 10}, storage)
    pair.head[0] = 10

    def needed(struct: Pair) -> dict[str, int]:
        return {"data": int(struct.head[0])}

    assert len(open_struct(Pair, DTYPES, storage, needed, shared=True).data) == 10
    pair.head[0] = 1100
    with pytest.raises(StateError, match=r"data\.array is cut short: 1,100 entries were needed; got 10"):
        open_struct(Pair, DTYPES, storage, needed, shared=True)


@pytest.mark.parametrize(
    ("lengths", "size"), [((8, 8), 8), ((8, 4), 8), ((7, 7), 8), ((1,), 1), ((5, 3, 2), 8)]
)
def test_columns_of_a_table_are_as_long_as_the_longest_and_a_power_of_two(
    lengths: tuple[int, ...], size: int
) -> None:
    assert table_size(*(np.empty(length) for length in lengths)) == size


def test_removing_a_storage_removes_its_directory(tmp_path: Path) -> None:
    storage = MappedStorage(tmp_path / "arrays")
    storage.create("numbers", np.int64, 4)
    storage.remove()
    storage.remove()
    assert not (tmp_path / "arrays").exists()


def test_a_full_disk_is_reported_and_costs_nothing_that_was_there(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        storage = MappedStorage(disk)
        array = storage.create("numbers", np.int64, 1000)
        array[:] = 3
        with pytest.raises(
            StateError, match=r"no space left for index file .*numbers\.array: 8,000,000 bytes"
        ):
            storage.grow("numbers", array, 1_000_000)
        with pytest.raises(StateError, match="no space left for index file"):
            storage.create("more", np.int64, 1_000_000)
        with pytest.raises(StateError, match="no space left for index file"):
            storage.create("numbers", np.int64, 1_000_000)
        assert [path.name for path in disk.iterdir()] == ["numbers.array"]
        assert (array == 3).all()
        again = storage.open("numbers", np.int64, shared=True)
        assert again[:1000].tolist() == [3] * 1000
        assert not again[1000:].any()
        assert len(storage.grow("numbers", array, 2000)) == 2000


def test_a_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    storage = MappedStorage(tmp_path / "arrays")
    (tmp_path / "arrays").rmdir()
    with pytest.raises(StateError, match="cannot be written"):
        storage.create("numbers", np.int64, 4)


def test_rows_of_ragged_arrays_are_what_lies_between_offsets() -> None:
    ragged = Ragged(np.array([1, 2, 3]), np.array([0, 0, 2, 3]))
    assert ragged.n_rows == 3
    assert [ragged.row(i).tolist() for i in range(3)] == [[], [1, 2], [3]]


def test_frozen_arrays_are_read_only_views_that_leave_the_original_as_it_was() -> None:
    array = np.arange(10)
    view = frozen(array)
    assert not view.flags.writeable
    assert array.flags.writeable
    assert np.shares_memory(array, view)
    strided = frozen(array[::2])
    assert strided.flags.c_contiguous
    assert strided.tolist() == [0, 2, 4, 6, 8]
