"""What a dispatcher does alone: publications/s when nobody waits, when all are routed, and in any script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ps2stream_bench.engines import stream_of, warm_once
from ps2stream_bench.figure import Case, Context, Figure, Page, Scale, Verdict
from ps2stream_bench.metrics import distinct, medians, middle, ratio, where
from ps2stream_bench.micro.dispatcher import NO_SUBSCRIPTIONS, ROUTED, STRANGERS, contenders_of, take_turns
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import compile_subscriptions, publish_events, subscribe_events
from ps2stream_bench.workloads.scripts import ASCII

#: Publications/s that are asked for, by who waits.
_TARGETS = {NO_SUBSCRIPTIONS: 1_000_000, STRANGERS: 1_000_000, ROUTED: 500_000}
#: Times as long as ASCII that a text in any script may take.
_MOST_TIMES = 3.0

_SIZES: dict[Scale, int] = {"tiny": 2_000, "small": 1_000_000, "paper": 5_000_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 2_000, "small": 200_000, "paper": 1_000_000}
_N_PUBLICATIONS: dict[Scale, int] = {"tiny": 1_000, "small": 50_000, "paper": 50_000}
_N_REPETITIONS: dict[Scale, int] = {"tiny": 2, "small": 9, "paper": 9}
#: A plan is made of this many publications and as many subscriptions, at most.
_N_PLANNED = 50_000

_COLUMNS = [
    Column("workload", "kind"),
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("waiting", "waiting"),
    Column("texts", "script"),
    Column("publications/s", "publications_per_s", ",.0f"),
    Column("discarded", "discarded_share", ".0%"),
    Column("fan-out", "fan_out", ".2f"),
    Column("H1 and H2, bytes a subscription", "h2_bytes_per_subscription", ",.0f"),
]


def cases(scale: Scale) -> list[Case]:
    """Return a case for Q1, and beyond the smallest scale one for Q2."""
    fixed = {
        "subscriptions": _SIZES[scale],
        "corpus": _N_CORPUS[scale],
        "publications": _N_PUBLICATIONS[scale],
        "workers": 8,
        "repetitions": _N_REPETITIONS[scale],
    }
    return [Case({"kind": kind, **fixed}) for kind in (("q1",) if scale == "tiny" else ("q1", "q2"))]


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Dispatch the same publications again and again, in turns with the same in other scripts."""
    warm_once()
    corpus = context.corpus("us", case["corpus"])
    n, tokenizer = case["subscriptions"], corpus.tokenizer()
    n_planned = min(n, _N_PLANNED)
    stream = stream_of(corpus, case["kind"], n_planned, n_planned, context.seed)
    plan = stream.plan(stream.settings(n_workers=case["workers"]))
    subscribes = subscribe_events(corpus, case["kind"], n, context.seed)
    subs = compile_subscriptions(subscribes, tokenizer, tokenizer.tokenize(corpus.texts))
    publishes = publish_events(corpus, case["publications"], n + 1, context.seed + 1)
    contenders = contenders_of(plan, subs, publishes, tokenizer)
    turns = take_turns(contenders, tokenizer, n, case["repetitions"], context.seed)
    for repetition, contender, measured in turns:
        about = {"repetition": repetition, "waiting": contender.waiting, "script": contender.script}
        yield {**about, **measured._asdict()}


def page(rows: Sequence[Row]) -> Page:
    """Compare rates with what is asked for, and scripts with ASCII."""
    verdicts = []
    for kind in distinct(rows, "kind"):
        own = where(rows, kind=kind)
        verdicts += [_rate_verdict(own, kind, waiting) for waiting in _TARGETS]
        scripts = distinct(where(own, waiting=STRANGERS), "script")
        verdicts += [_script_verdict(own, kind, script) for script in scripts if script != ASCII]
    lines = sorted(
        medians(rows, ["kind", "waiting", "script"]),
        key=lambda row: (row["kind"], row["waiting"], -row["publications_per_s"]),
    )
    return Page(
        paper="",
        ours="One thread checks publications, tokenises, routes and packs them, in processor time, a batch "
        "of an engine's size at a time, for 8 workers of a hybrid plan. *No subscriptions* and "
        "*subscriptions to other terms* discard everything; *all routed* has only publications that go to "
        "some worker. Other scripts write the same texts, word by word, with other characters.",
        differs="What nobody waits for is known by its terms alone, before they are sorted. What is routed "
        "pays for a look-up of each term in H2, which no cache holds, for sorting, and for a copy for each "
        "worker.",
        tables=[table(lines, _COLUMNS)],
        drawings=[],
        verdicts=verdicts,
    )


def _rate_verdict(rows: Sequence[Row], kind: str, waiting: str) -> Verdict:
    target = _TARGETS[waiting]
    rate = middle(row["publications_per_s"] for row in where(rows, waiting=waiting, script=ASCII))
    return Verdict(
        f"A dispatcher takes {target:,} publications/s on one core, {waiting}, {kind.upper()}",
        "",
        f"{rate:,.0f} publications/s" if rate.n else "not measured",
        rate.median >= target if rate.n else None,
    )


def _script_verdict(rows: Sequence[Row], kind: str, script: str) -> Verdict:
    own = where(rows, waiting=STRANGERS)
    share = ratio(own, "publications_per_s", {"script": ASCII}, {"script": script})
    return Verdict(
        f"Texts in other scripts take at most {_MOST_TIMES:g} times as long: {script}, {kind.upper()}",
        "",
        f"{share:.1f} times as long as ASCII" if share.n else "not measured",
        share.median <= _MOST_TIMES if share.n else None,
    )


FIGURE = Figure(
    name="dispatcher",
    title="The dispatcher alone",
    about="How many publications one core tokenises, routes and packs, by who waits for them and by script.",
    cases=cases,
    measure=measure,
    page=page,
)
