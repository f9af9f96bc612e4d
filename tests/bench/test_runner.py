"""A run measures what is not there yet, keeps every row with what is needed to understand it, and goes on."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from ps2stream_bench.figure import Case, Context, Figure, Page
from ps2stream_bench.results import Results, Row
from ps2stream_bench.runner import Done, in_random_order, run


class Silent:
    """Remember what was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begins(self, figure: Figure, n_cases: int, n_kept: int) -> None:
        self.told.append(f"{figure.name} {n_cases} {n_kept}")

    def case_begins(self, figure: Figure, case: Case) -> None:
        self.told.append(f"> {case}")

    def case_ends(self, figure: Figure, case: Case, seconds: float, failure: str | None) -> None:
        self.told.append(f"< {case} {failure}")


class Counting:
    """A figure of three cases that counts how often each was measured."""

    def __init__(self) -> None:
        self.measured: list[int] = []
        self.failing: set[int] = set()
        self.interrupted_at: int | None = None

    def figure(self) -> Figure:
        return Figure("counting", "Counting", "", lambda scale: [Case({"n": n}) for n in (1, 2, 3)],
                      self.measure, lambda rows: Page("", "", "", [], []))  # fmt: skip

    def measure(self, case: Case, context: Context) -> Iterable[Row]:
        if case["n"] == self.interrupted_at:
            raise KeyboardInterrupt
        self.measured.append(case["n"])
        for repetition in range(2):
            yield {"repetition": repetition, "square": case["n"] ** 2}
            if case["n"] in self.failing:
                raise RuntimeError("the disk is on fire")


@pytest.fixture
def counting() -> Counting:
    return Counting()


def _run(counting: Counting, tmp_path: Path, seed: int = 1, *, again: bool = False) -> Done:
    context = Context(seed)
    try:
        return run([counting.figure()], "tiny", context, Results(tmp_path), Silent(), again=again)
    finally:
        context.close()


def test_every_row_says_what_it_was_measured_with(counting: Counting, tmp_path: Path) -> None:
    done = _run(counting, tmp_path)
    rows = Results(tmp_path).read("counting", "tiny")
    assert (done.n_measured, done.n_kept, done.failures) == (3, 0, ())
    assert sorted((row["n"], row["repetition"], row["square"]) for row in rows) == [
        (n, repetition, n * n) for n in (1, 2, 3) for repetition in (0, 1)
    ]
    told = {
        "figure",
        "scale",
        "case",
        "seed",
        "commit",
        "processor",
        "n_cores",
        "python",
        "measured_at",
        "source",
    }
    assert all(told <= row.keys() and None not in row.values() for row in rows)


def test_a_second_run_measures_nothing(counting: Counting, tmp_path: Path) -> None:
    _run(counting, tmp_path)
    done = _run(counting, tmp_path)
    assert (done.n_measured, done.n_kept) == (0, 3)
    assert sorted(counting.measured) == [1, 2, 3]


def test_another_seed_and_again_measure_anew(counting: Counting, tmp_path: Path) -> None:
    _run(counting, tmp_path)
    assert _run(counting, tmp_path, seed=2).n_measured == 3
    assert _run(counting, tmp_path, again=True).n_measured == 3
    assert len(Results(tmp_path).read("counting", "tiny")) == 12, "two seeds, six rows each; again replaces"


def test_a_case_that_fails_leaves_no_rows_and_the_others_their_own(
    counting: Counting, tmp_path: Path
) -> None:
    counting.failing = {2}
    done = _run(counting, tmp_path)
    assert done.n_measured == 2
    assert done.failures == ("counting n=2: RuntimeError: the disk is on fire",)
    assert {row["n"] for row in Results(tmp_path).read("counting", "tiny")} == {1, 3}
    counting.failing = set()
    assert _run(counting, tmp_path).n_measured == 1


def test_an_interrupted_run_keeps_what_is_done_and_goes_on(counting: Counting, tmp_path: Path) -> None:
    order = [case["n"] for case in in_random_order(counting.figure().cases("tiny"), "counting", 1)]
    counting.interrupted_at = order[1]
    with pytest.raises(KeyboardInterrupt):
        _run(counting, tmp_path)
    assert {row["n"] for row in Results(tmp_path).read("counting", "tiny")} == {order[0]}
    counting.interrupted_at = None
    assert (_run(counting, tmp_path).n_kept, counting.measured) == (1, order)


def test_publications_of_a_file_are_cases_of_their_own(counting: Counting, tmp_path: Path) -> None:
    _run(counting, tmp_path)
    file = tmp_path / "own.parquet"
    file.write_bytes(b"only looked at from outside")
    context = Context(1, file)
    done = run([counting.figure()], "tiny", context, Results(tmp_path), Silent())
    context.close()
    assert done.n_measured == 3
    sources = {row["source"] for row in Results(tmp_path).read("counting", "tiny")}
    assert {source.split()[0] for source in sources} == {"generated", "file"}


def test_the_order_of_cases_is_random_but_fixed() -> None:
    cases = [Case({"n": n}) for n in range(50)]
    order = in_random_order(cases, "a", 1)
    assert order == in_random_order(cases, "a", 1)
    assert order != cases
    assert order != in_random_order(cases, "b", 1)
    assert sorted(case["n"] for case in order) == list(range(50))


def test_a_watcher_is_told_of_every_case(counting: Counting, tmp_path: Path) -> None:
    counting.failing = {3}
    watcher, context = Silent(), Context(1)
    run([counting.figure()], "tiny", context, Results(tmp_path), watcher)
    context.close()
    assert watcher.told[0] == "counting 3 0"
    assert sorted(watcher.told[2::2]) == [
        "< n=1 None",
        "< n=2 None",
        "< n=3 RuntimeError: the disk is on fire",
    ]
