"""What the kernels cost on this machine and this sample: c1 to c4 of Definition 1, by trials.

Parts of the sample of different sizes are tried with plans for different numbers of workers. Every worker
of every trial gives three observations: the seconds of its matching, of its insertions and of its deletions,
next to the work that it had. The costs are what explains them best, and none of them is negative.

scipy is imported where it is used: who plans with standard costs need not wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ps2stream.arrays import Float64s, Int64s
from ps2stream.partitioning.grid import GridPartitioner
from ps2stream.partitioning.load import STANDARD_COSTS, Costs, LoadFunction
from ps2stream.partitioning.sample import Sample, digest_of, some_of
from ps2stream.planning.trial import Trial, try_plan

#: Publications and subscriptions of the parts. With few subscriptions a publication has few candidates, with
#: many it has many: that tells the cost of a candidate from the cost of a publication.
_SIZES = ((40_000, 4_000), (40_000, 20_000))
#: With more workers each has so little to do that the fixed cost of a call, some 0.1 ms, passes for theirs.
_WORKERS = (6, 2, 4)
_MOST_S = 1.0

#: The share of candidates is counted on this many publications and subscriptions at most.
_COUNTED = 30_000

#: What a standard cost weighs against one observation.
_DOUBT = 0.1

#: Clocks and fixed costs of a call blur what is smaller.
_LEAST_SAMPLE = 500
_LEAST_ROWS = 50


@dataclass(frozen=True, slots=True)
class Prediction:
    """How well loads foretell the busy time of workers; errors are relative to the measured time."""

    rank_correlation: float
    mean_error: float
    max_error: float
    n_workers: int


def standard_costs(sample: Sample, load: LoadFunction) -> Costs:
    """Return costs that do not depend on the machine, so that plans made with them are the same everywhere.

    The paper's c1 is an average over all pairs, few of which are looked at: it depends on the sample.
    """
    if load == "candidates":
        return STANDARD_COSTS
    return replace(STANDARD_COSTS, match=STANDARD_COSTS.match * looks_per_pair(sample), load=load)


def looks_per_pair(sample: Sample) -> float:
    """Return how many looks there are for a pair of a publication and a subscription; never quite 0."""
    digest = digest_of(part_of(sample, _COUNTED, _COUNTED))
    reads = np.bincount(digest.reads.lists, minlength=digest.n_lists)
    stands = np.bincount(digest.stands.lists, minlength=digest.n_lists)
    n_pairs = digest.n_publications * digest.n_subscriptions
    return max(len(digest.reads.lists) + int(reads @ stands), 1) / max(n_pairs, 1)


def calibrate(sample: Sample, load: LoadFunction) -> Costs:
    """Measure the costs within two seconds; a sample that is too small to measure gets the standard ones."""
    standard = standard_costs(sample, load)
    if min(sample.n_publications, sample.n_subscriptions) < _LEAST_SAMPLE:
        return standard
    return fit(list(_trials(sample)), standard)


def fit(trials: Sequence[Trial], standard: Costs) -> Costs:
    """Fit the costs to measured seconds.

    An error counts by its share of the measured time, so that light workers have a say. The standard costs
    are one more observation each, which decides only where the trials cannot: without candidates, say.
    """
    from scipy.optimize import nnls

    expected = np.array([standard.match, standard.publication, standard.insert, standard.delete])
    rows = [_DOUBT * np.diag(1 / np.maximum(expected, 1e-9))]
    for trial in trials:
        rows += _observations(trial, standard.load)
    work = np.concatenate(rows)
    # Every row is divided by what was measured, so that 1 is what its costs should add up to.
    wanted = np.ones(len(work))
    wanted[: len(expected)] = _DOUBT
    match, publication, insert, delete = nnls(work, wanted)[0].tolist()
    return Costs(match, publication, insert, delete, standard.load)


def prediction(trials: Sequence[Trial], costs: Costs) -> Prediction:
    """Compare the loads of all workers of several trials with their busy time.

    Workers that have hardly anything to do are left out: what they measure is the clock.
    """
    counted = [trial.n_publications + trial.n_subscriptions >= _LEAST_ROWS for trial in trials]
    # A trial holds the sampled subscriptions only, however many they stand for.
    as_tried = [replace(trial, sample=trial.sample._replace(n_live=0)) for trial in trials]
    pairs = list(zip(as_tried, counted, strict=True))
    predicted = 1e-9 * np.concatenate([trial.loads(costs)[rows] for trial, rows in pairs])
    measured = np.concatenate([trial.busy_s()[rows] for trial, rows in pairs])
    if not len(measured):
        return Prediction(float("nan"), float("nan"), float("nan"), 0)
    errors = np.abs(predicted - measured) / measured
    correlation = rank_correlation(predicted, measured)
    return Prediction(correlation, float(errors.mean()), float(errors.max()), len(measured))


def rank_correlation(a: Float64s, b: Float64s) -> float:
    """Return Spearman's rank correlation; NaN where one side is all the same."""
    from scipy.stats import spearmanr

    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b).statistic)


def _trials(sample: Sample) -> Iterator[Trial]:
    _try(part_of(sample, _LEAST_SAMPLE, _LEAST_SAMPLE), 2)  # loads the kernels
    stop = time.monotonic() + _MOST_S
    parts = [part_of(sample, *sizes) for sizes in _SIZES]
    for n_workers in _WORKERS:
        for part in parts:
            if time.monotonic() > stop:
                return
            # Twice: the first trial finds cold caches, and noise only ever adds to a time.
            yield quietest([_try(part, n_workers), _try(part, n_workers)])


def _try(part: Sample, n_workers: int) -> Trial:
    return try_plan(GridPartitioner().plan(part, n_workers), part)


def quietest(trials: Sequence[Trial]) -> Trial:
    """Join trials of one plan on one sample, which differ in their seconds only: the least ones count."""
    return replace(
        trials[0],
        match_s=np.min([trial.match_s for trial in trials], axis=0),
        insert_s=np.min([trial.insert_s for trial in trials], axis=0),
        delete_s=np.min([trial.delete_s for trial in trials], axis=0),
    )


def _observations(trial: Trial, load: LoadFunction) -> list[Float64s]:
    """Return rows of (pairs, publications, insertions, deletions) for a nanosecond of measured time each."""
    none = np.zeros(len(trial.n_publications))
    n_subs = trial.n_subscriptions
    steps = (
        (trial.match_s, trial.n_publications, (trial.matching(load), trial.n_publications, none, none)),
        (trial.insert_s, n_subs, (none, none, n_subs, none)),
        (trial.delete_s, n_subs, (none, none, none, n_subs)),
    )
    rows = []
    for seconds, n_rows, columns in steps:
        told = (n_rows >= _LEAST_ROWS) & (seconds > 0)
        work: Float64s = np.column_stack(columns).astype(np.float64)
        rows.append(work[told] / (1e9 * seconds[told, None]))
    return rows


def part_of(sample: Sample, n_publications: int, n_subscriptions: int) -> Sample:
    """Take publications and subscriptions from all over the sample, at most this many of either."""
    pubs = _spread(sample.n_publications, n_publications)
    subs = _spread(sample.n_subscriptions, n_subscriptions)
    return some_of(sample, pubs, subs)._replace(n_live=0)


def _spread(n: int, n_wanted: int) -> Int64s:
    return np.arange(min(n, n_wanted)) * n // max(min(n, n_wanted), 1)
