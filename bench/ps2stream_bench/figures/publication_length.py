"""Cost of a publication against its length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ps2stream_bench.figure import Case, Context, Figure, Page, Scale, Verdict
from ps2stream_bench.figures import cost
from ps2stream_bench.figures.cost_page import (
    NOT_IN_THE_PAPER,
    Knob,
    cost_drawing,
    cost_table,
    ends,
    growth,
    how,
    kinds,
    not_measured,
    per_kind,
)
from ps2stream_bench.results import Column, Row

_MEAN_TERMS = (3.0, 6.0, 11.0, 22.0, 44.0)
_KNOB = Knob("mean_terms", "distinct terms a text, asked for", ".0f", is_log=False)
_N_TERMS = Column("terms, stop words left out", "n_terms", ".1f")
#: Texts are long here, and there are five corpora of them: each is smaller than elsewhere.
_LARGEST_CORPUS = 50_000


def cases(scale: Scale) -> list[Case]:
    """Return a case for Q1 and one for Q2."""
    found = cost.cases(scale)
    return [Case({**case.settings, "n_corpus": min(case["n_corpus"], _LARGEST_CORPUS)}) for case in found]


def measure(case: Case, context: Context) -> Iterator[Row]:
    """Load engines that get texts of different length; their subscriptions ask for words of those texts."""
    corpora = {n: context.corpus(case["country"], case["n_corpus"], mean_terms=n) for n in _MEAN_TERMS}
    n_terms = {n: len(each.tokenizer().tokenize(each.texts).values) for n, each in corpora.items()}
    contenders = {n: cost.contender(case, corpus) for n, corpus in corpora.items()}
    for row in cost.compare(case, context, _KNOB.field, contenders):
        mean_terms = row[_KNOB.field]
        yield row | {"n_terms": n_terms[mean_terms] / len(corpora[mean_terms].texts)}


def page(rows: Sequence[Row]) -> Page:
    """Say what long texts cost."""
    caption = "Left: the cost of a publication. Right: lists looked up, candidates in them, matches."
    return Page(
        paper=f"{NOT_IN_THE_PAPER} It does not give the length of its tweets.",
        ours=f"{how(rows)}\n\n{_OURS}",
        differs=_WHY,
        tables=[cost_table(rows, _KNOB, _N_TERMS)],
        drawings=[cost_drawing(rows, _KNOB, "publication-length", caption)],
        verdicts=_verdicts(rows),
    )


_OURS = """\
Every engine has a corpus of its own, with texts of the given mean number of distinct terms; the words of
subscriptions are drawn as often as they occur there. A file of publications in place of the generator has
one length, and all values are then the same."""

_WHY = """\
A dispatcher cuts the text into terms and looks up each of them: that part grows with the length of the
text, on top of what any publication costs. A worker gets only the terms that somebody in the cell asks
for, and looks up one list for each; so lists, candidates and matches grow with the number of terms.
Subscriptions with AND are found under their rarest keyword and match when the others are there too, which
a long text has more often: matches keep pace with candidates."""


def _verdicts(rows: Sequence[Row]) -> list[Verdict]:
    claim = "The cost of a publication grows slower than the number of its terms"
    if ends(rows, _KNOB) is None:
        return [not_measured(claim)]
    longer = {kind: growth(rows, _KNOB, kind, "n_terms") for kind in kinds(rows)}
    grown = {kind: growth(rows, _KNOB, kind) for kind in kinds(rows)}
    return [
        Verdict(
            claim=claim,
            paper="",
            ours=per_kind(
                rows, lambda kind: f"{longer[kind].median:.1f} times the terms cost {grown[kind]:.2f} times"
            ),
            holds=all(grown[kind].median < longer[kind].median for kind in kinds(rows)),
        )
    ]


FIGURE = Figure(
    name="publication-length",
    title="Cost against the length of publications",
    about="What a publication costs when texts have 3 to 44 distinct terms.",
    cases=cases,
    measure=measure,
    page=page,
)
