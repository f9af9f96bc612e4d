"""The job file binds a job to some of its settings, and is written once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engines.streams import SETTINGS
from ps2stream.errors import StateError
from ps2stream.state.job_file import FORMAT, JobFile
from ps2stream.store.contract import Store


def test_a_job_has_a_name_of_its_own_and_its_first_plan(store: Store) -> None:
    job_file, other = JobFile(store), JobFile(store.under("other"))
    assert not job_file.exists()
    job_file.create(SETTINGS, first_plan=3)
    other.create(SETTINGS, first_plan=4)
    assert job_file.exists()
    assert job_file.job_id == JobFile(store).job_id != other.job_id
    assert (job_file.first_plan, other.first_plan) == (3, 4)


def test_a_job_file_is_written_once(store: Store) -> None:
    job_file = JobFile(store)
    job_file.create(SETTINGS, first_plan=1)
    job_id = job_file.job_id
    with pytest.raises(StateError, match=r"there is a state in .* already"):
        job_file.create(SETTINGS, first_plan=2)
    assert (job_file.job_id, job_file.first_plan) == (job_id, 1)


def test_settings_that_nothing_depends_on_may_change(store: Store) -> None:
    JobFile(store).create(SETTINGS, first_plan=1)
    JobFile(store).check(replace(SETTINGS, n_dispatchers=9, batch_events=1))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_workers": 4}, "was made with n_workers=3; got 4"),
        ({"grid_bits": 6}, "was made with grid_bits=5; got 6"),
        ({"max_cells": 1}, "was made with max_cells=16; got 1"),
        ({"stop_words": ("the",)}, r"was made with stop_words=\(\); got \('the',\)"),
    ],
)
def test_settings_that_do_not_fit_are_an_error(store: Store, changed: dict[str, int], message: str) -> None:
    JobFile(store).create(SETTINGS, first_plan=1)
    with pytest.raises(StateError, match=message):
        JobFile(store).check(replace(SETTINGS, **changed))  # type: ignore[arg-type]


def test_stop_words_are_compared_by_what_they_are(store: Store) -> None:
    stopping = replace(SETTINGS, stop_words=("the", "a"))
    JobFile(store).create(stopping, first_plan=1)
    JobFile(store).check(stopping)
    assert JobFile(store).stop_words == ("the", "a")


@pytest.mark.parametrize("about", ["", "{", "[1]", "7", "null", '{"format": 99}', '{"format": 3}', "\xff"])
def test_a_damaged_job_file_or_one_of_another_format_is_an_error(store: Store, about: str) -> None:
    store.put("job.json", about.encode("latin-1"))
    with pytest.raises(StateError, match=rf"job\.json (cannot be read|must have format {FORMAT})"):
        JobFile(store).check(SETTINGS)
    with pytest.raises(StateError, match=r"job\.json cannot be read"):
        _ = JobFile(store).job_id


@pytest.mark.parametrize(
    ("numbers_events", "was", "came"), [(False, "with", "without"), (True, "without", "with")]
)
def test_a_job_keeps_to_events_with_a_seq_or_to_those_without(
    store: Store, numbers_events: bool, was: str, came: str
) -> None:
    JobFile(store).create(SETTINGS, first_plan=1, numbers_events=numbers_events)
    JobFile(store).check_order(numbers_events)
    with pytest.raises(StateError, match=f"was made by events {was} a seq; got events {came}"):
        JobFile(store).check_order(not numbers_events)


def test_a_missing_job_file_is_an_error(store: Store) -> None:
    with pytest.raises(StateError, match=r"job\.json cannot be read: .*job\.json is missing"):
        JobFile(store).check(SETTINGS)
