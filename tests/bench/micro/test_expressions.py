"""Expressions to measure with have the form that they are said to have."""

from __future__ import annotations

import pytest

from ps2stream.model.expressions import parse
from ps2stream_bench.micro.expressions import FORMS, expressions_of, turns
from ps2stream_bench.workloads import corpus_for

pytestmark = pytest.mark.kernel

CORPUS = corpus_for("us", 200, 3)


@pytest.mark.parametrize("form", FORMS)
def test_expressions_have_their_form_and_parse(form: str) -> None:
    texts = expressions_of(CORPUS, form, 40, 1).to_pylist()
    stop_words = CORPUS.tokenizer().stop_words
    assert len(set(texts)) > 20
    for text in texts:
        parsed = parse(text)
        assert ("(" in text) == form.startswith("parentheses")
        assert text.isascii() == ("Cyrillic" not in form)
        assert (str(parsed.without(stop_words)) != str(parsed)) == ("stop words" in form)


def test_both_roads_are_measured_in_every_turn() -> None:
    measured = list(turns(CORPUS, "parentheses", 100, 2, 1))
    assert len(measured) == 2
    assert all(each.compiled_per_s > 0 and each.parsed_per_s > 0 for each in measured)
