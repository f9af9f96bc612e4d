"""Every figure runs at the smallest scale, on every machine, and gives a page; most do so in `./dev slow`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ps2stream_bench.figure import SCALES, Context
from ps2stream_bench.figures import MODULES, figures_named
from ps2stream_bench.report import page_text, reported, write
from ps2stream_bench.results import Results
from ps2stream_bench.runner import run

#: Run always: one that runs kernels, one that does not.
SMOKE = ("gi2", "journal")

every_figure = pytest.mark.parametrize("name", MODULES)
some_figures = pytest.mark.parametrize(
    "name",
    [name if name in SMOKE else pytest.param(name, marks=pytest.mark.slow) for name in MODULES],
)


class Listener:
    """Listen to nobody: what failed is told in the end."""

    def begins(self, *told: object) -> None: ...

    def case_begins(self, *told: object) -> None: ...

    def case_ends(self, *told: object) -> None: ...


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    """Share corpora."""
    shared = Context(seed=1)
    yield shared
    shared.close()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(tmp_path_factory.mktemp("results"))


@every_figure
def test_a_figure_has_distinct_cases_at_every_scale(name: str) -> None:
    (figure,) = figures_named([name])
    assert figure.name == name
    for scale in SCALES:
        cases = figure.cases(scale)
        assert cases
        assert len({str(case) for case in cases}) == len(cases)


@some_figures
def test_a_figure_runs_and_gives_a_page(
    name: str, context: Context, results: Results, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name not in SMOKE:
        context.use_spark(request.getfixturevalue("spark"))  # the session of all tests, if it needs one
    figures = figures_named([name])
    done = run(figures, "tiny", context, results, Listener())
    assert done.failures == ()
    assert done.n_measured == len(figures[0].cases("tiny"))
    (page,) = reported(figures, results)
    write([page], tmp_path)
    text = (tmp_path / f"{name}.md").read_text()
    assert text == page_text(page)
    assert all((tmp_path / "images" / f"{name}-{each.name}.png").exists() for each in page.page.drawings)
    assert all(verdict.claim in text and verdict.ours in text for verdict in page.page.verdicts)
    assert not re.search(r"\bnan\b", text), "what was not measured is shown as a dash or left out"
