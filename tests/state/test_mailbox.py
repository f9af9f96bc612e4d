"""A job leaves word of itself, and finds what others ask of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from disks import small_disk
from ps2stream.errors import StateError
from ps2stream.state.mailbox import Mailbox
from ps2stream.store.contract import Store
from ps2stream.store.directory import DirectoryStore


def test_the_last_word_of_a_job_is_there_for_others_to_read(store: Store) -> None:
    mailbox = Mailbox(store)
    assert mailbox.read_status() is None
    mailbox.write_status({"batch_id": 3})
    mailbox.write_status({"batch_id": 4})
    assert Mailbox(store).read_status() == {"batch_id": 4}
    mailbox.forget_status()
    mailbox.forget_status()
    assert mailbox.read_status() is None


def test_a_board_is_kept_beside_the_status_by_epoch(store: Store) -> None:
    Mailbox(store).write_board({"engine": "inline"})
    Mailbox(store, 3).write_board({"engine": "microbatch"})
    assert Mailbox(store).read_board() == {"engine": "inline"}
    assert Mailbox(store, 3).read_board() == {"engine": "microbatch"}
    assert Mailbox(store).read_status() is Mailbox(store, 4).read_board() is None
    assert sorted(store.list()) == ["board-00000003.json", "board.json"]


@pytest.mark.parametrize("damage", ["", "{", "[1]", "7"])
def test_a_damaged_status_is_an_error_that_names_it(store: Store, damage: str) -> None:
    store.put("status.json", damage.encode())
    with pytest.raises(StateError, match=r"status\.json cannot be read"):
        Mailbox(store).read_status()


def test_a_status_for_which_there_is_no_space_is_left_out(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        mailbox = Mailbox(DirectoryStore(disk))
        mailbox.write_status({"batch_id": 3})
        mailbox.write_status({"batch_id": "4" * 1_000_000})
        assert mailbox.read_status() == {"batch_id": 3}


def test_a_request_for_a_new_plan_is_taken_once_however_often_it_was_made(store: Store) -> None:
    mailbox = Mailbox(store)
    assert not mailbox.take_request()
    mailbox.request_repartition()
    Mailbox(store).request_repartition()
    assert mailbox.take_request()
    assert not mailbox.take_request()
    assert not Mailbox(store).take_request()
