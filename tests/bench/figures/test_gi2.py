"""Claims about GI2 are judged on hand-made rows."""

from typing import Any

import pytest

from ps2stream_bench.figures.gi2 import FIGURE
from ps2stream_bench.results import Row


def _rows(n: int, **of_gi2: Any) -> list[Row]:
    about = {"kind": "q1", "subscriptions": n, "publications": 10, "corpus": 10, "repetitions": 2}
    both = {
        "ends_per_s": 1e6,
        "inserts_per_s": 5e5,
        "candidates_per_publication": 9.0,
        "matches_per_publication": 2.0,
        "postings_per_subscription": 2.0,
        "bytes_per_subscription": 100.0,
    }
    rows = []
    for turn in range(2):
        repeated = {**about, **both, "repetition": turn}
        gi2 = {"index": "GI2", "publications_per_s": 400.0, "deletes_per_s": 4e5, **of_gi2}
        rows.append({**repeated, **gi2})
        for index, rate in (("naive, 6 bits", 50.0), ("naive, 10 bits", 100.0)):
            rows.append({**repeated, "index": index, "publications_per_s": rate, "deletes_per_s": None})
    return rows


def _verdicts(rows: list[Row]) -> dict[str, bool | None]:
    return {verdict.claim: verdict.holds for verdict in FIGURE.page(rows).verdicts}


def test_the_best_naive_index_is_the_one_to_beat() -> None:
    verdicts = FIGURE.page(_rows(5_000_000)).verdicts
    assert all(verdict.holds for verdict in verdicts)
    assert verdicts[0].ours.startswith("4.0 [4.0 to 4.0] times the best naive one (naive, 10 bits)")


@pytest.mark.parametrize(
    ("measured", "failing"),
    [
        ({"publications_per_s": 299.0}, "matches 3 times"),
        ({"bytes_per_subscription": 121.0}, "at most 120 bytes"),
        ({"inserts_per_s": 299_999.0}, "inserts 300,000"),
        ({"deletes_per_s": 299_999.0}, "deletes as many"),
    ],
)
def test_each_target_can_be_missed(measured: dict[str, float], failing: str) -> None:
    verdicts = _verdicts(_rows(5_000_000, **measured))
    assert [claim for claim, holds in verdicts.items() if not holds] == [
        claim for claim in verdicts if failing in claim
    ]


def test_small_indexes_are_judged_only_where_there_are_no_large_ones() -> None:
    together = _verdicts(_rows(100_000) + _rows(1_000_000) + _rows(5_000_000))
    assert not any(" 100,000 subscriptions" in claim for claim in together)
    assert sum(" 1,000,000 subscriptions" in claim for claim in together) == 4
    assert any(" 100,000 subscriptions" in claim for claim in _verdicts(_rows(100_000)))
