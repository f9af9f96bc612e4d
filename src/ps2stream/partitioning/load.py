"""The load of a worker (Definition 1), by two formulas.

The paper charges every pair of a publication and a subscription that meet at a worker::

    paper        L = c1 |O| |Q| + c2 |O| + c3 |Q inserted| + c4 |Q deleted|

An index looks only at the subscriptions in the lists that a publication reads::

    candidates   L = c1 |looks| + c2 |O| + c3 |Q inserted| + c4 |Q deleted|

A look is a list that is read, or a candidate in it: each is mostly a cache miss, and they cost alike. How
many looks there are hardly depends on how space and terms are divided; to how many workers a publication
goes and a subscription is stored does.

Which of the two predicts the measured time of workers better is reported in docs/performance.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ps2stream.errors import ConfigError
from ps2stream.kernels import kernel

LoadFunction = Literal["paper", "candidates"]
LOAD_FUNCTIONS: tuple[LoadFunction, ...] = ("candidates", "paper")


@dataclass(frozen=True, slots=True)
class Costs:
    """c1 to c4 in nanoseconds, and what c1 is charged for."""

    match: float
    publication: float
    insert: float
    delete: float
    load: LoadFunction = "candidates"

    def __post_init__(self) -> None:
        if self.load not in LOAD_FUNCTIONS:
            raise ConfigError(f"load must be one of {', '.join(LOAD_FUNCTIONS)}; got {self.load!r}")
        # A second for one step is far beyond all reason, and far below what sums would overflow at.
        if not all(0 <= value <= 1e9 for value in (self.match, self.publication, self.insert, self.delete)):
            raise ConfigError(f"costs must lie between 0 and a second; got {self}")


#: What the kernels cost where nobody has calibrated them: fitted to Q1, Q2 and Q3, synthetic and real, with
#: 200,000 publications and as many subscriptions under five plans each (142, 42, 810, 130), and rounded. A
#: copy of a publication is charged twice what a worker pays for it: the dispatcher that makes it pays, too.
STANDARD_COSTS = Costs(match=140.0, publication=100.0, insert=800.0, delete=130.0)


class Rates(NamedTuple):
    """Costs as they fall on the counts of a sample; kernels take it as it is."""

    match: float
    publication: float
    subscription: float
    is_paper: bool


def rates_of(costs: Costs, live_weight: float, churn_weight: float) -> Rates:
    """Scale costs from the sample to the stream it was drawn from.

    A sampled subscription stands for ``live_weight`` live ones, and is inserted, and deleted,
    ``churn_weight`` times while the sampled publications pass. Looks are counted with that weight already.
    """
    return Rates(
        costs.match * (live_weight if costs.load == "paper" else 1.0),
        costs.publication,
        (costs.insert + costs.delete) * churn_weight,
        costs.load == "paper",
    )


@kernel
def load_of(rates: Rates, n_publications: float, n_subscriptions: float, n_looks: float) -> float:
    """Charge what one worker gets by Definition 1."""
    matched = n_publications * n_subscriptions if rates.is_paper else n_looks
    return rates.match * matched + rates.publication * n_publications + rates.subscription * n_subscriptions
