"""Drawings are whole files in the format of their name, and the same for the same plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from cli.plans import cell_plan, figures_of, sample_around_munich, sample_at, term_plan, tree_plan
from ps2stream.cli.render.plan_drawing import colours_of, draw_plan
from ps2stream.errors import StateError
from ps2stream.partitioning.plan import Plan

SAMPLE = sample_around_munich()


@pytest.mark.parametrize("plan", [cell_plan(), term_plan(), tree_plan()], ids=["cells", "terms", "tree"])
def test_a_png_shows_more_than_paper(plan: Plan, tmp_path: Path) -> None:
    draw_plan(plan, SAMPLE, figures_of(plan), tmp_path / "plan.png")
    picture = imread(tmp_path / "plan.png")
    assert picture.shape[1] == 1170
    colours = (picture[..., :3] * 255).astype(np.int64) @ [1 << 16, 1 << 8, 1]
    assert len(np.unique(colours)) > 50


def _texts(path: Path) -> str:
    """Return the comments of a drawing: matplotlib writes each text in one, next to its outlines."""
    ElementTree.parse(path)  # it is XML
    return " ".join(re.findall("<!--(.*?)-->", path.read_text()))


def test_an_svg_names_partitioner_workers_axes_and_balance(tmp_path: Path) -> None:
    plan = tree_plan()
    draw_plan(plan, SAMPLE, figures_of(plan, 1.0, 2.0, 3.0), tmp_path / "plan.svg")
    texts = _texts(tmp_path / "plan.svg")
    for text in ("by hand, 3 workers", "longitude", "latitude", "divided by terms", "publication", "mean"):
        assert text in texts
    assert "L_max/L_min 3.00, L_max/L_avg 1.50" in texts


def test_what_is_not_there_is_not_in_the_legend(tmp_path: Path) -> None:
    plan = cell_plan(1)
    draw_plan(plan, SAMPLE, figures_of(plan), tmp_path / "plan.svg")
    texts = _texts(tmp_path / "plan.svg")
    assert "divided by terms" not in texts
    assert "cells, 1 worker " in texts + " "


def test_an_idle_worker_is_said_to_be_one(tmp_path: Path) -> None:
    plan = cell_plan(2)
    draw_plan(plan, SAMPLE, figures_of(plan, 1.0, 0.0), tmp_path / "plan.svg")
    assert "a worker is idle, L_max/L_avg 2.00" in _texts(tmp_path / "plan.svg")


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_the_same_plan_gives_the_same_file(ending: str, tmp_path: Path) -> None:
    plan = tree_plan()
    first, second = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    for path in (first, second):
        draw_plan(plan, SAMPLE, figures_of(plan), path)
    assert first.read_bytes() == second.read_bytes()


def test_a_plan_of_nothing_can_be_drawn(tmp_path: Path) -> None:
    plan = cell_plan(2)
    draw_plan(plan, sample_at([], []), figures_of(plan, 0.0, 0.0), tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 0


def test_an_interrupted_drawing_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(figure: Figure, file: Any, **options: Any) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    (tmp_path / "plan.png").write_bytes(b"old")
    monkeypatch.setattr(Figure, "savefig", interrupt)
    with pytest.raises(KeyboardInterrupt):
        draw_plan(cell_plan(), SAMPLE, figures_of(cell_plan()), tmp_path / "plan.png")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.png"]
    assert (tmp_path / "plan.png").read_bytes() == b"old"


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot write .*gone/plan\.png"):
        draw_plan(cell_plan(), SAMPLE, figures_of(cell_plan()), tmp_path / "gone" / "plan.png")


@pytest.mark.parametrize(("n_workers", "least"), [(1, 0.0), (8, 0.25), (10, 0.25), (64, 0.03), (1024, 0.0)])
def test_colours_are_as_far_apart_as_their_number_lets_them(n_workers: int, least: float) -> None:
    colours = colours_of(n_workers)
    assert colours.shape == (n_workers, 3)
    assert ((colours >= 0) & (colours <= 1)).all()
    apart = np.linalg.norm(colours[:, None] - colours[None], axis=2) + 9 * np.eye(n_workers)
    assert apart.min() > least
