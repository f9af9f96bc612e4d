"""The page of micro-batches judges fixed cost and memory by the rows alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ps2stream_bench.figures.microbatch import page
from ps2stream_bench.results import Row

MIB = 2**20


def fixed(trigger_ms: float, batch: int = 0) -> Row:
    return {
        "what": "fixed cost",
        "case": "a",
        "batch": batch,
        "events": 2_000,
        "subscriptions": 10_000,
        "trigger_ms": trigger_ms,
    }


def run_of(python_mib: Callable[[int], float], n: int = 30) -> list[Row]:
    """Make the rows of a run that was looked at every minute."""
    return [
        {
            "what": "memory",
            "case": "b",
            "source": "s",
            "subscriptions": 1_000_000,
            "minute": float(minute),
            "process": process,
            "resident_bytes": int(mib * MIB),
        }
        for minute in range(n)
        for process, mib in (("driver", 500.0), ("java", 900.0), ("python", python_mib(minute)))
    ]


def verdicts(rows: list[Row]) -> list[tuple[str, bool | None]]:
    return [(verdict.ours, verdict.holds) for verdict in page(rows).verdicts]


def test_the_median_batch_decides_on_the_fixed_cost() -> None:
    cheap = [fixed(ms, number) for number, ms in enumerate([150.0, 180.0, 900.0])]
    dear = [fixed(ms, number) for number, ms in enumerate([150.0, 210.0, 220.0])]
    assert verdicts(cheap)[0] == ("180 [150 to 900] ms", True)
    assert verdicts(dear)[0] == ("210 [150 to 220] ms", False)


@pytest.mark.parametrize(
    ("python_mib", "share", "is_flat"),
    [
        (lambda minute: 600.0, "1.000", True),
        # Growing into its size at first is no leak.
        (lambda minute: 600.0 if minute > 8 else 100.0, "1.000", True),
        (lambda minute: 600.0 + 20 * minute, "1.087", False),
    ],
)
def test_memory_is_flat_when_the_last_third_is_like_the_middle_one(
    python_mib: Callable[[int], float], share: str, is_flat: bool
) -> None:
    told, holds = verdicts(run_of(python_mib))[1]
    assert told == f"{share} times, in 29.0 minutes with 1,000,000 subscriptions"
    assert holds is is_flat


def test_what_was_not_measured_is_not_judged() -> None:
    assert verdicts([]) == [("not measured", None), ("not measured", None)]


def test_the_table_has_a_line_for_every_kind_of_process_and_for_all() -> None:
    memory = page(run_of(lambda minute: 100.0 + minute)).tables[1]
    assert [line.split(" | ")[1] for line in memory.splitlines()[2:]] == ["driver", "java", "python", "all"]
    assert "| 1,000,000 | python | 104 | 114 | 124 | 129 |" in memory
    assert "| 1,000,000 | all | 1,504 | 1,514 | 1,524 | 1,529 |" in memory
