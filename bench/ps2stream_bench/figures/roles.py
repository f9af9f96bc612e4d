"""What exists once: the merger, for every match, and the registrar, for every update and expression."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from ps2stream.config import Settings
from ps2stream.planning.first_plan import first_plan
from ps2stream_bench.figure import Case, Context, Figure, Page, Scale, Verdict
from ps2stream_bench.metrics import distinct, medians, middle, where
from ps2stream_bench.micro import expressions, merger, registrar
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import Shape, compile_arrays, publish_events, subscribe_events

#: Nanoseconds of the merger a match, to merge and name it, and to write it as well.
_MERGE_NS, _DELIVER_NS = 150.0, 300.0
_UPDATES_PER_S = 300_000.0
#: Expressions/s that are compiled, without and with parentheses.
_FLAT_PER_S, _NESTED_PER_S = 500_000.0, 200_000.0

_MERGER_SIZES: dict[Scale, tuple[int, ...]] = {
    "tiny": (2_000,),
    "small": (100_000, 1_000_000),
    "paper": (100_000, 1_000_000, 10_000_000),
}
_REGISTRAR_SIZES: dict[Scale, tuple[int, ...]] = {
    "tiny": (2_000,),
    "small": (100_000, 1_000_000),
    "paper": (100_000, 1_000_000, 5_000_000),
}
_N_PUBLICATIONS: dict[Scale, int] = {"tiny": 500, "small": 80_000, "paper": 80_000}
_N_UPDATES: dict[Scale, int] = {"tiny": 400, "small": 100_000, "paper": 100_000}
_N_CORPUS: dict[Scale, int] = {"tiny": 500, "small": 200_000, "paper": 1_000_000}
_N_REPETITIONS: dict[Scale, int] = {"tiny": 2, "small": 5, "paper": 5}
_N_WORKERS = 4
#: Q1 with regions of this side: wherever they are centred, they are cut to the whole world.
_WORLD, _WORLD_KM = "q1 world", 80_000.0
#: A plan is made from this many publications and subscriptions.
_N_SAMPLE = 20_000

_MERGER_COLUMNS = [
    Column("workload", "kind"),
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("matches a publication", "matches_per_publication", ",.1f"),
    Column("workers: put together, ns a match", "grouping_ns", ",.0f"),
    Column("merger: merge and name, ns", "merging_ns", ",.0f"),
    Column("of that name, ns", "naming_ns", ",.0f"),
    Column("merger: write, ns", "writing_ns", ",.0f"),
    Column("packet bytes a match", "found_bytes", ",.1f"),
    Column("Parquet bytes a match", "parquet_bytes", ",.1f"),
]
_REGISTRAR_COLUMNS = [
    Column("workload", "kind"),
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("parsed/s", "parsed_per_s", ",.0f"),
    Column("decided/s", "decided_per_s", ",.0f"),
    Column("both, updates/s", "updates_per_s", ",.0f"),
]
_EXPRESSION_COLUMNS = [
    Column("expressions", "form"),
    Column("kernels: compiled/s", "compiled_per_s", ",.0f"),
    Column("parser: parsed/s", "parsed_per_s", ",.0f"),
]


def cases(scale: Scale) -> list[Case]:
    """Return a case for each role, kind and number of subscriptions, and for each form of expressions."""
    fixed = {"corpus": _N_CORPUS[scale], "repetitions": _N_REPETITIONS[scale]}
    merging = [
        Case({"role": "merger", "kind": "q1", "subscriptions": n, "batch": _N_PUBLICATIONS[scale], **fixed})
        for n in _MERGER_SIZES[scale]
    ]
    compiling = [
        Case({"role": "expressions", "form": form, "batch": _N_UPDATES[scale], **fixed})
        for form in expressions.FORMS
    ]
    registering = [
        Case({"role": "registrar", "kind": kind, "subscriptions": n, "batch": _N_UPDATES[scale], **fixed})
        for kind in ("q1", "q2", _WORLD)
        for n in _REGISTRAR_SIZES[scale]
    ]
    return merging + compiling + registering


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Measure one role with this many subscriptions alive, or what is compiled for it."""
    measures = {"merger": _measure_merger, "expressions": _measure_forms, "registrar": _measure_registrar}
    found = measures[case["role"]](case, context)
    # The first turn finds nothing in the caches that a stream would have there.
    next(found)
    for repetition, measured in enumerate(found):
        yield {"repetition": repetition, **measured}


def _measure_merger(case: Case, context: Context) -> Iterator[Row]:
    corpus, n = context.corpus("us", case["corpus"]), case["subscriptions"]
    subscribes = subscribe_events(corpus, case["kind"], n, context.seed)
    publishes = publish_events(corpus, case["batch"], n + 1, context.seed + 1)
    settings = Settings()
    arrays = compile_arrays(corpus, subscribes, publishes)
    found = merger.find_matches(arrays, settings.grid_bits, settings.max_cells)
    seq, ids = publishes["seq"].to_numpy(), publishes["id"].combine_chunks()
    parts = merger.divide(found, seq, ids, _N_WORKERS)
    registry = merger.registry_of(subscribes)
    for _ in range(case["repetitions"] + 1):
        with tempfile.TemporaryDirectory(dir=context.scratch) as directory:
            yield merger.measure(parts, registry, Path(directory))._asdict()


def _measure_forms(case: Case, context: Context) -> Iterator[Row]:
    corpus = context.corpus("us", case["corpus"])
    n_turns = case["repetitions"] + 1
    for measured in expressions.turns(corpus, case["form"], case["batch"], n_turns, context.seed):
        yield measured._asdict()


def _measure_registrar(case: Case, context: Context) -> Iterator[Row]:
    corpus, n = context.corpus("us", case["corpus"]), case["subscriptions"]
    n_new = case["batch"] // 2 * (case["repetitions"] + 1)
    kind, shape = case["kind"], Shape()
    if kind == _WORLD:
        kind, shape = "q1", Shape(side_km=(_WORLD_KM, _WORLD_KM))
    subscribes = subscribe_events(corpus, kind, n + n_new, context.seed, shape=shape)
    publishes = publish_events(corpus, min(_N_SAMPLE, case["corpus"]), 1, context.seed + 1)
    sample = pa.concat_tables([publishes, subscribes.slice(0, min(_N_SAMPLE, n))]).combine_chunks()
    seq = sample.schema.field("seq")
    numbered = sample.set_column(0, seq, pa.array(np.arange(1, sample.num_rows + 1)))
    plan = first_plan(numbered.to_batches()[0], Settings(n_workers=_N_WORKERS))
    tokenizer = corpus.tokenizer()
    live = registrar.loaded(plan, tokenizer, subscribes.slice(0, n))
    ended = np.random.default_rng([context.seed, 17]).permutation(n)
    # Where more begin than there are, the same end once; what is left over ends what has just begun.
    ids = subscribes["id"].combine_chunks()
    ending = pa.concat_arrays([ids.slice(0, n).take(pa.array(ended)), ids.slice(n)]).slice(0, n_new)
    for measured in registrar.turns(live, tokenizer, subscribes.slice(n), ending, case["batch"]):
        yield measured._asdict()


def page(rows: Sequence[Row]) -> Page:
    """Hold both roles against their targets."""
    merging, deciding = where(rows, role="merger"), where(rows, role="registrar")
    compiling = where(rows, role="expressions")
    verdicts = []
    for n in distinct(merging, "subscriptions"):
        own = where(merging, subscriptions=n)
        merge = middle(row["merging_ns"] for row in own)
        deliver = middle(row["merging_ns"] + row["writing_ns"] for row in own)
        verdicts += [
            Verdict(
                f"The merger merges and names a match within {_MERGE_NS:g} ns, {n:,} subscriptions",
                "",
                f"{merge:.0f} ns",
                merge.median <= _MERGE_NS,
            ),
            Verdict(
                f"With writing, a match takes at most {_DELIVER_NS:g} ns, {n:,} subscriptions",
                "",
                f"{deliver:.0f} ns",
                deliver.median <= _DELIVER_NS,
            ),
        ]
    for kind in distinct(deciding, "kind"):
        for n in distinct(where(deciding, kind=kind), "subscriptions"):
            rate = middle(row["updates_per_s"] for row in where(deciding, kind=kind, subscriptions=n))
            verdicts.append(
                Verdict(
                    f"The registrar takes {_UPDATES_PER_S:,.0f} updates/s, parsing included, "
                    f"{kind.upper()}, {n:,} subscriptions",
                    "",
                    f"{rate:,.0f} updates/s",
                    rate.median >= _UPDATES_PER_S,
                )
            )
    verdicts += [_form_verdict(compiling, form) for form in distinct(compiling, "form")]
    by = ["kind", "subscriptions", "form"]
    return Page(
        paper="",
        ours="Merger: the matches of a batch of publications, found by one index and parted among four "
        "workers, are put together by publication, merged, named and written as Parquet. Registrar: batches "
        "of updates, half of them subscribes, are parsed and decided on. Both in processor time of one core, "
        "with all subscriptions of a case alive. Expressions: the same words in expressions of several "
        "forms, a column of them compiled by kernels; the parser reads some of them in the same turn.",
        differs="Merger and registrar exist once, so what they cost bounds the whole system, however many "
        "workers there are.",
        tables=[
            table(medians(own, by), columns)
            for own, columns in (
                (merging, _MERGER_COLUMNS),
                (deciding, _REGISTRAR_COLUMNS),
                (compiling, _EXPRESSION_COLUMNS),
            )
            if own
        ],
        drawings=[],
        verdicts=verdicts,
    )


def _form_verdict(rows: Sequence[Row], form: str) -> Verdict:
    target = _NESTED_PER_S if form.startswith("parentheses") else _FLAT_PER_S
    rate = middle(row["compiled_per_s"] for row in where(rows, form=form))
    return Verdict(
        f"One core compiles {target:,.0f} expressions/s: {form}",
        "",
        f"{rate:,.0f} expressions/s",
        rate.median >= target,
    )


FIGURE = Figure(
    name="roles",
    title="What exists once: merger and registrar",
    about="What a match costs the merger, and how many updates/s the registrar takes.",
    cases=cases,
    measure=measure,
    page=page,
)
