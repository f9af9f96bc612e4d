"""Workloads in the spirit of the paper's Sec. VI: publications, subscriptions, and streams of both.

``publications`` makes texts at places, like geo-tagged tweets of the US or the UK: around real towns, with
words by Zipf's law and topics that depend on the region. ``countries`` has the figures of real tweets that
it is fitted to, and ``statistics`` computes the same figures of any corpus. A ``corpus`` is what everything
else is drawn from, generated or read from any Parquet file with lat, lon and text.

``subscriptions`` are squares centred on publications, with keywords of their texts. Q1 asks for what is
written often, in small regions; Q2 for at least one word that is rare, in larger ones. For Q3 ``regions``
cuts the space into 100 parts, half of which draw Q1 and half Q2. ``streams`` mixes publications and updates
five to one; in a drifting stream some regions change their kind from interval to interval; an
``endless_stream`` goes on for as long as somebody looks.

Everything is made as events first (schema EVENTS), texts and expressions included; ``compiled_arrays`` makes
the arrays that kernels take of those events, with the product's own tokenizer. So an index and an engine can
be measured on the very same workload. The same arguments always give the same events.
"""

from ps2stream_bench.workloads.compiled_arrays import (
    Arrays,
    compile_arrays,
    compile_subscriptions,
    draw_arrays,
)
from ps2stream_bench.workloads.corpus import N_STOP_WORDS, Corpus, corpus_for, corpus_of, read_corpus
from ps2stream_bench.workloads.countries import COUNTRIES, PROFILES, Country, Profile, Targets
from ps2stream_bench.workloads.endless_stream import endless_parts, taken_back
from ps2stream_bench.workloads.frame import Frame
from ps2stream_bench.workloads.publications import PUBLICATIONS, generate, write_publications
from ps2stream_bench.workloads.regions import busy_by_interval, draws_q2, kinds_by_interval, region_of
from ps2stream_bench.workloads.statistics import Statistics, statistics_of
from ps2stream_bench.workloads.streams import drifting_events, mixed_events, publish_events
from ps2stream_bench.workloads.subscriptions import KINDS, Kind, Shape, subscribe_events

__all__ = [
    "COUNTRIES",
    "KINDS",
    "N_STOP_WORDS",
    "PROFILES",
    "PUBLICATIONS",
    "Arrays",
    "Corpus",
    "Country",
    "Frame",
    "Kind",
    "Profile",
    "Shape",
    "Statistics",
    "Targets",
    "busy_by_interval",
    "compile_arrays",
    "compile_subscriptions",
    "corpus_for",
    "corpus_of",
    "draw_arrays",
    "draws_q2",
    "drifting_events",
    "endless_parts",
    "generate",
    "kinds_by_interval",
    "mixed_events",
    "publish_events",
    "read_corpus",
    "region_of",
    "statistics_of",
    "subscribe_events",
    "taken_back",
    "write_publications",
]
