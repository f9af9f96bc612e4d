"""The page of the limits sets measured time beside what memory costs."""

from ps2stream_bench.figure import Context
from ps2stream_bench.figures.limits import FIGURE
from ps2stream_bench.results import joined, table_of


def test_cases_of_all_scales_are_distinct() -> None:
    for scale in ("tiny", "small", "paper"):
        names = [str(case) for case in FIGURE.cases(scale)]
        assert names
        assert len(set(names)) == len(names)


def test_the_bound_is_made_of_the_lines_that_have_to_be_read() -> None:
    case, context = FIGURE.cases("tiny")[0], Context(1)
    try:
        rows = list(FIGURE.measure(case, context))
    finally:
        context.close()
    for row in rows:
        n_in_a_row = row["candidates_per_publication"] / 8
        n_random = row["lines_per_publication"] - n_in_a_row
        assert n_random >= row["lookups_per_publication"] + row["matches_per_publication"]
        by_hand = (n_random * row["prefetched_ns"] + n_in_a_row * row["in_a_row_ns"]) / 1000
        assert abs(row["bound_us"] - by_hand) <= 1e-9
        assert row["measured_us"] > 0
    page = FIGURE.page(joined([table_of([{**case.settings, **row} for row in rows])]))
    assert "measured / bound" in page.tables[0]
