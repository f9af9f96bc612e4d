from __future__ import annotations

import argparse

import pytest

from ps2stream.cli.options.arguments import bounds, count, glued, natural, point, seconds, unicode_text


def test_coordinates_may_begin_with_a_minus() -> None:
    assert glued(["--region", "-1,2,3,4", "--at", "-.5,1"]) == ["--region=-1,2,3,4", "--at=-.5,1"]


def test_other_words_stay_as_they_are() -> None:
    words = ["subscribe", "--region", "1,2,3,4", "--at", "--json", "--limit", "-5"]
    assert glued(words) == words


def test_a_point_is_latitude_then_longitude() -> None:
    assert point("48.1, -11.5") == (48.1, -11.5)


def test_bounds_are_in_the_order_of_geojson() -> None:
    assert bounds("-180,-90,180,90") == (-180.0, -90.0, 180.0, 90.0)


@pytest.mark.parametrize("text", ["", "1", "1,2,3", "1;2", "a,b", "1,,2"])
def test_what_is_no_point_is_refused_with_its_notation(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be LAT,LON in degrees"):
        point(text)


def test_bytes_that_are_no_text_are_refused() -> None:
    assert unicode_text("Feuer 🔥") == "Feuer 🔥"
    with pytest.raises(argparse.ArgumentTypeError, match="valid Unicode"):
        unicode_text("a\udcff")


def test_seconds_are_a_number_that_clocks_know() -> None:
    assert (seconds("0"), seconds("0.25"), seconds("1e2")) == (0.0, 0.25, 100.0)
    for text in ("", "-1", "-0.001", "nan", "inf", "-inf", "1e9", "soon"):
        with pytest.raises(
            argparse.ArgumentTypeError, match="must be a number of seconds between 0 and 86,400"
        ):
            seconds(text)


def test_numbers_are_whole_and_not_negative() -> None:
    assert (count("0"), count("12"), natural("12")) == (0, 12, 12)
    for text in ("", "-1", "1.5", "x", "\u0663"):
        with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number; got"):
            count(text)
    with pytest.raises(argparse.ArgumentTypeError, match="must be a whole number above 0; got '0'"):
        natural("0")


def test_a_number_of_very_many_digits_is_refused_in_few_words() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must have at most 18 digits; got") as caught:
        count("9" * 10_000)
    assert len(str(caught.value)) < 200
