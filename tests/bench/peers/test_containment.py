from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ps2stream.matcher import event_table
from ps2stream.model.space import Region
from ps2stream.model.subscriptions import Subscription
from ps2stream.text.tokenizer import Tokenizer
from ps2stream_bench.peers.boxes_and_clauses import interests_of
from ps2stream_bench.peers.containment import ClauseTerms, satisfied

EVERYWHERE = Region(-180.0, -90.0, 180.0, 90.0)
WORDS = st.sampled_from("abcdefgh")
CLAUSES = st.lists(st.lists(WORDS, min_size=1, max_size=3), min_size=1, max_size=3)
TEXTS = st.lists(st.lists(WORDS, max_size=5), min_size=1, max_size=4)


# The first example may have to compile kernels.
@settings(deadline=None)
@given(st.lists(CLAUSES, min_size=1, max_size=5), TEXTS)
def test_a_text_satisfies_a_box_if_it_holds_all_terms_of_a_clause(
    expressions: list[list[list[str]]], texts: list[list[str]]
) -> None:
    asked = [" OR ".join(" AND ".join(clause) for clause in clauses) for clauses in expressions]
    events = event_table([Subscription(str(i), each, EVERYWHERE) for i, each in enumerate(asked)])
    interests = interests_of(events, Tokenizer())
    clauses = ClauseTerms.of(interests)
    hashed = Tokenizer().tokenize(pa.array([" ".join(text) for text in texts]))
    # The first text stands before the block, so rows and places in it differ.
    row, box = (each.ravel() for each in np.indices((len(texts) - 1, len(expressions))))
    told = satisfied(interests, clauses, clauses.contents(hashed, 1, len(texts)), row, box)
    wanted = [
        any(set(clause) <= set(text) for clause in alternatives)
        for text in texts[1:]
        for alternatives in expressions
    ]
    assert told.tolist() == wanted
