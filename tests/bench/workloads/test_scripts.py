"""Texts in other scripts keep their words apart, and are what their script says."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest

from ps2stream.text.terms import terms_of
from ps2stream_bench.workloads.scripts import ASCII, MIXED, SCRIPTS, written_in

TEXTS = pa.array(["Fire in the hills", "the rain", "smoke"] * 10)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_text_has_as_many_terms_in_any_script(script: str) -> None:
    written = written_in(script, TEXTS).to_pylist()
    assert [len(terms_of(text)) for text in written] == [len(terms_of(text)) for text in TEXTS.to_pylist()]


@pytest.mark.parametrize("script", SCRIPTS)
def test_only_ascii_is_ascii(script: str) -> None:
    n_ascii = sum(text.isascii() for text in written_in(script, TEXTS).to_pylist())
    assert n_ascii == {ASCII: len(TEXTS), MIXED: len(TEXTS) * 4 // 5}.get(script, 0)


def test_some_scripts_are_normal_and_others_are_not() -> None:
    normal = {
        script: all(unicodedata.is_normalized("NFKC", text) for text in written_in(script, TEXTS).to_pylist())
        for script in SCRIPTS
    }
    assert [script for script, is_normal in normal.items() if not is_normal] == [
        MIXED,
        "accents, decomposed",
        "full-width",
    ]
