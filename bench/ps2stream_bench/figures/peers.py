"""PS2Stream beside what people use instead, on the same events, in one run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ps2stream_bench.figure import Case, Context, Drawing, Figure, Page, Scale, Setting, Verdict
from ps2stream_bench.metrics import distinct, medians, middles, ratio, where
from ps2stream_bench.peers.catalogue import NAMES, Setup, open_peer, unavailable
from ps2stream_bench.peers.contract import Peer
from ps2stream_bench.plots import in_thousands, lines
from ps2stream_bench.results import Column, Row, table
from ps2stream_bench.workloads import publish_events, subscribe_events

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

OURS = ("PS2Stream inline", "PS2Stream microbatch")

_RATE = "publications_per_s"

_SIZES: dict[Scale, tuple[int, ...]] = {
    "tiny": (1_000,),
    "small": (10_000, 100_000, 1_000_000),
    "paper": (10_000, 100_000, 1_000_000, 5_000_000),
}
_N_CORPUS: dict[Scale, int] = {"tiny": 500, "small": 200_000, "paper": 1_000_000}
_N_REPETITIONS: dict[Scale, int] = {"tiny": 1, "small": 3, "paper": 5}
#: A turn of a peer lasts about so long, if it can match the first publications faster than that.
_TURN_S: dict[Scale, float] = {"tiny": 0.2, "small": 2.0, "paper": 10.0}
#: Publications that all peers match first, to see that they find the same.
_N_FIRST: dict[Scale, int] = {"tiny": 50, "small": 200, "paper": 200}
_N_MOST = 200_000
#: Batches grow as long as four times the size gives so much more, up to turns of this many times the usual.
_STILL_GAINS, _LONGEST_TURNS = 1.2, 4.0
#: Who needs longer to load, or for a first turn, is not measured.
_LONGEST_S = 600.0

_ORDER = [("publication_seq", "ascending"), ("subscription_seq", "ascending")]

_COLUMNS = [
    Column("subscriptions", "subscriptions", ",.0f"),
    Column("system", "peer"),
    Column("publications/s", "publications_per_s", ",.0f"),
    Column("publications of a turn", "n_publications", ",.0f"),
    Column("ms a publication", "ms_per_publication", ",.3f"),
    Column("loading, subscriptions/s", "loaded_per_s", ",.0f"),
    Column("bytes a subscription", "bytes_per_subscription", ",.0f"),
    Column("matches", "matches_per_publication", ".1f"),
    Column("inline is faster by", "inline_ratio", ",.1f"),
    Column("microbatch by", "microbatch_ratio", ",.1f"),
]


def cases(scale: Scale) -> list[Case]:
    """Return a case for each number of subscriptions."""
    fixed: dict[str, Setting] = {
        "kind": "q1",
        "corpus": _N_CORPUS[scale],
        "repetitions": _N_REPETITIONS[scale],
        "turn_s": _TURN_S[scale],
        "first": _N_FIRST[scale],
    }
    return [Case({"subscriptions": n, **fixed}) for n in _SIZES[scale]]


@dataclass(slots=True)
class _Contender:
    """A peer with its subscriptions, and how many publications it gets in a turn."""

    peer: Peer
    load_s: float
    n_publications: int
    seq: int


def measure(case: Case, context: Context) -> Iterable[Row]:
    """Load every peer that there is, see that all find the same, and let them take turns."""
    corpus = context.corpus("us", case["corpus"])
    n, first = case["subscriptions"], case["first"]
    subscribes = subscribe_events(corpus, case["kind"], n, context.seed)
    publishes = publish_events(corpus, _N_MOST, n + 1, context.seed)
    # A plan is made from other publications than are matched.
    sample = publish_events(corpus, _N_MOST, n + 1, context.seed + 1)
    setup = Setup(context.spark, corpus.stop_words, 2, sample)
    with ExitStack() as stack:
        contenders: dict[str, _Contender] = {}
        found: dict[str, pa.Table] = {}
        for name in NAMES:
            reason = unavailable(name)
            if reason is None:
                try:
                    peer = open_peer(name, setup)
                    stack.callback(peer.close)
                    contender = _loaded(peer, subscribes, case)
                    pairs = _matched(contender, publishes, first).sort_by(_ORDER)
                    _warm_up(contender, publishes, case["turn_s"])
                    peer.rest()
                except Exception as error:  # what one peer cannot do is a result, and costs no other its turn
                    reason = f"{name} stopped with {n:,} subscriptions: {type(error).__name__}: {error}"
            if reason is not None:
                context.say(f"    left out: {reason}")
                yield {"peer": name, "unavailable": reason}
                continue
            contenders[name], found[name] = contender, pairs
            _check_same(found)
            told = f"loaded in {contender.load_s:.1f} s, {contender.n_publications:,} a turn"
            context.say(f"    {name}: {told}")
        rng = np.random.default_rng([context.seed, 11])
        for repetition in range(case["repetitions"]):
            for index in rng.permutation(len(contenders)):
                name = list(contenders)[index]
                turn = _turn(contenders[name], publishes, n, first)
                yield {"repetition": repetition, "peer": name, **turn}


def _loaded(peer: Peer, subscribes: pa.Table, case: Case) -> _Contender:
    started = time.perf_counter()
    peer.load(subscribes)
    load_s = time.perf_counter() - started
    if load_s > _LONGEST_S:
        raise TimeoutError(f"loading took {load_s:.0f} s, more than the {_LONGEST_S:.0f} s allowed")
    return _Contender(peer, load_s, case["first"], case["subscriptions"] + 1)


def _turn(contender: _Contender, publishes: pa.Table, n_subscriptions: int, n_first: int) -> Row:
    n = contender.n_publications
    contender.peer.wake()
    _matched(contender, publishes, n_first)  # what starts again after a rest is not on the clock
    started = time.perf_counter()
    pairs = _matched(contender, publishes, n)
    seconds = time.perf_counter() - started
    contender.peer.rest()
    n_bytes = contender.peer.index_bytes()
    return {
        "n_publications": n,
        "publications_per_s": n / seconds,
        "ms_per_publication": 1000 * seconds / n,
        "loaded_per_s": n_subscriptions / contender.load_s,
        "bytes_per_subscription": None if n_bytes is None else n_bytes / n_subscriptions,
        "matches_per_publication": pairs.num_rows / n,
    }


def _warm_up(contender: _Contender, publishes: pa.Table, turn_s: float) -> None:
    """Let a peer match more and more, which warms it up, until larger batches bring it nothing.

    A turn is then long enough to be measured, and large enough for those with a fixed cost for each batch.
    """
    rate = 0.0
    while True:
        started = time.perf_counter()
        _matched(contender, publishes, contender.n_publications)
        seconds = time.perf_counter() - started
        if seconds > _LONGEST_S:
            told = f"{contender.n_publications:,} publications took {seconds:.0f} s"
            raise TimeoutError(f"{told}, more than the {_LONGEST_S:.0f} s allowed")
        before, rate = rate, contender.n_publications / seconds
        is_steady = seconds >= turn_s and rate < _STILL_GAINS * before
        if is_steady or seconds >= _LONGEST_TURNS * turn_s or contender.n_publications == _N_MOST:
            return
        contender.n_publications = min(4 * contender.n_publications, _N_MOST)


def _matched(contender: _Contender, publishes: pa.Table, n: int) -> pa.Table:
    """Match the first publications; they get new seqs each time, because a stream does not run backwards.

    The pairs have the numbers of the publications in place of these seqs.
    """
    seqs = pa.array(np.arange(contender.seq, contender.seq + n))
    events = publishes.slice(0, n).set_column(0, publishes.schema.field("seq"), seqs)
    pairs = contender.peer.match(events)
    numbers = pa.array(pairs["publication_seq"].to_numpy() - contender.seq)
    contender.seq += n
    return pairs.set_column(1, "publication_seq", numbers)


def _check_same(found: dict[str, pa.Table]) -> None:
    name, newest = list(found.items())[-1]
    for other, pairs in found.items():
        if not pairs.equals(newest):
            told = f"{other} {pairs.num_rows:,} and {name} {newest.num_rows:,}"
            raise ValueError(f"all systems must find the same pairs; got {told}, or others")


def page(rows: Sequence[Row]) -> Page:
    """Show rates over the number of subscriptions, and how many times the others' ours are."""
    measured = [row for row in rows if row.get("publications_per_s")]
    found = sorted(
        medians(measured, ["subscriptions", "peer"]),
        key=lambda row: (row["subscriptions"], -row["publications_per_s"]),
    )
    for row in found:
        own = where(found, subscriptions=row["subscriptions"])
        for field, name in zip(("inline_ratio", "microbatch_ratio"), OURS, strict=True):
            ours = where(own, peer=name)
            row[field] = ours[0]["publications_per_s"] / row["publications_per_s"] if ours else None
    left_out = [f"- Left out: {reason}" for reason in distinct(rows, "unavailable")]
    about = _ABOUT.format(
        first=rows[0]["first"],
        turn_s=rows[0]["turn_s"],
        longest=_LONGEST_TURNS * rows[0]["turn_s"],
        most=_N_MOST,
        n_cores=rows[0].get("n_cores", "all"),
    )
    return Page(
        paper="The paper compares with no other system.",
        ours="\n".join([f"STS-US-{rows[0]['kind'].upper()}, subscriptions that stay. {about}", *left_out]),
        differs=_DIFFERS,
        tables=[table(found, _COLUMNS)],
        drawings=[Drawing("rates", _CAPTION, lambda canvas: _draw(canvas, measured), (8.0, 4.0))],
        verdicts=_verdicts(measured),
    )


_CAPTION = (
    "Publications/s by the clock on the wall, over the number of subscriptions (both axes logarithmic)."
)

_ABOUT = """\
Every system loads the same subscriptions and matches the same publications; the pairs of the first
{first} publications have to be the same, or the case fails. Then they take turns in a random order, each
at rest while another is measured. A turn is one batch, as large as a system profits from: it grows until
it takes {turn_s:g} s and four times as many publications do not raise the rate by a fifth, or it takes
{longest:g} s, or it has {most:,}. This is kind to Spark, which has a fixed cost for each. Cutting texts
into terms is part of matching for everybody. Our inline engine, the numpy scan and the STRtree use one
core, the others the {n_cores} of the machine as they like.

- *PS2Stream inline* and *microbatch*: two workers; microbatch writes its matches durably to Parquet.
- *Spark SQL*: what a PySpark user would write: explode publications and clauses to (cell, term), join,
  filter. Clauses are cached, publications are broadcast to them.
- *numpy scan*: test every region, then the terms of those that hold the point.
- *shapely STRtree*: a bulk query of an STR-packed R-tree, then the terms, in numpy.
- *PostgreSQL + PostGIS*: a row for each clause, GiST on regions and GIN on arrays of terms."""

_DIFFERS = """\
Only PS2Stream and the join in Spark ask for place and words at once. The scan's work grows with all
subscriptions. An index on places alone finds every subscription around a busy place, and there are more
of these the more subscriptions there are; only then it looks at words. The database has an index for
each; it can use one of them for a row, or intersect two long lists. The join of exploded rows compares
strings, plans and starts tasks for each batch, and repeats a subscription for every cell of its region,
which its loading and memory pay for. Our own micro-batch engine has such a fixed cost for a batch as
well, and its matches go through the merger to files: with few subscriptions that is most of its time."""


def _verdicts(rows: Sequence[Row]) -> list[Verdict]:
    verdicts = []
    for n in sorted(distinct(rows, "subscriptions")):
        own = where(rows, subscriptions=n)
        rates = {name: rate.median for (name,), rate in middles(own, ["peer"], _RATE).items()}
        others = {name: rate for name, rate in rates.items() if name not in OURS}
        for ours in OURS:
            if others and ours in rates:
                best = max(others, key=others.__getitem__)
                gain = ratio(own, _RATE, {"peer": ours}, {"peer": best})
                told = f"{gain:.1f} times the best peer ({best})"
                claim = f"{ours} is faster than every peer, {n:,} subscriptions"
                verdicts.append(Verdict(claim, "", told, gain.median > 1))
    return verdicts


def _draw(canvas: Canvas, rows: Sequence[Row]) -> None:
    axes = canvas.subplots()
    found = middles(rows, ["peer", "subscriptions"], _RATE)
    series = {
        name: {n: value for (peer, n), value in found.items() if peer == name}
        for name in NAMES
        if any(peer == name for peer, _ in found)
    }
    lines(axes, series)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("subscriptions")
    axes.set_ylabel("publications/s")
    in_thousands(axes)
    in_thousands(axes, "x")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


FIGURE = Figure(
    name="peers",
    title="PS2Stream and its peers",
    about="What people use instead, on the same subscriptions and publications.",
    cases=cases,
    measure=measure,
    page=page,
)
