from __future__ import annotations

from ps2stream.cli.render.charts import bar, sparkline


def test_a_sparkline_rises_from_zero_to_the_largest_value() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"


def test_a_sparkline_of_nothing_is_flat() -> None:
    assert sparkline([]) == ""
    assert sparkline([0.0, 0.0]) == "▁▁"


def test_a_bar_is_as_long_as_its_share_and_never_longer_than_its_width() -> None:
    assert bar(0.0, 10) == ""
    assert bar(0.25, 10) == "━━╸"
    assert bar(1.0, 4) == bar(7.5, 4) == "━━━━"
    assert bar(-1.0, 4) == ""
