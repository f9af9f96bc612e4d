"""What it costs to compile expressions, by form: a whole column in kernels, and one by one in the parser.

Time is processor time of the one thread that works.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ps2stream.model.expressions import parse
from ps2stream.text.clauses import compile_expressions
from ps2stream_bench.workloads import N_STOP_WORDS, Corpus
from ps2stream_bench.workloads.scripts import ASCII, written_in

_FLAT = ("{0}", "{0} AND {1}", "{0} OR {1}", "{0} AND {1} AND {2}", "{0} OR {1} OR {2}")
_NESTED = (
    "{0} AND ({1} OR {2})",
    "({0} AND {1}) OR {2}",
    "({0} OR {1}) AND ({2} OR {3})",
    "{0} AND ({1} OR ({2} AND {3}))",
)
_STOPPED = ("{s} AND {0}", "{0} AND {s} AND {1}", "{s} OR {0}", "{0} OR {1} AND {s}")
_N_WORDS = 4

#: Patterns, and the script of their keywords; `s` is a stop word.
FORMS: dict[str, tuple[tuple[str, ...], str]] = {
    "flat": (_FLAT, ASCII),
    "flat, with stop words": (_STOPPED, ASCII),
    "flat, Cyrillic": (_FLAT, "Cyrillic"),
    "parentheses": (_NESTED, ASCII),
    "parentheses, Cyrillic": (_NESTED, "Cyrillic"),
}
#: The parser gets one expression of this many: it is some hundred times slower.
_PARSED_SHARE = 50


class Measured(NamedTuple):
    """Expressions/s by both roads."""

    compiled_per_s: float
    parsed_per_s: float


def expressions_of(corpus: Corpus, form: str, n: int, seed: int) -> pa.Array:
    """Make expressions of a form, with words of the corpus."""
    patterns, script = FORMS[form]
    rng = np.random.default_rng([seed, 23])
    words = written_in(script, corpus.words.slice(N_STOP_WORDS)).to_pylist()
    drawn = rng.integers(0, len(words), (n, _N_WORDS)).tolist()
    pattern, stop = rng.integers(0, len(patterns), n).tolist(), rng.integers(0, N_STOP_WORDS, n).tolist()
    stop_words = corpus.stop_words
    texts = [
        patterns[pattern[row]].format(*(words[at] for at in drawn[row]), s=stop_words[stop[row]])
        for row in range(n)
    ]
    return pa.array(texts, pa.string())


def turns(corpus: Corpus, form: str, n: int, repetitions: int, seed: int) -> Iterator[Measured]:
    """Let kernels and parser take turns; what they find must be the same number of clauses."""
    expressions, tokenizer = expressions_of(corpus, form, n, seed), corpus.tokenizer()
    sample = expressions.slice(0, -(-n // _PARSED_SHARE)).to_pylist()
    for _ in range(repetitions):
        started = time.process_time()
        compiled = compile_expressions(expressions, tokenizer)
        done = time.process_time()
        n_clauses = sum(len(parse(text).without(tokenizer.stop_words).clauses()) for text in sample)
        parsed = time.process_time()
        if compiled.errors or compiled.clause_offsets[len(sample)] != n_clauses:
            raise ValueError(f"{form}: kernels must find the {n_clauses} clauses that the parser finds")
        yield Measured(n / max(done - started, 1e-9), len(sample) / max(parsed - done, 1e-9))
