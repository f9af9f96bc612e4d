"""What lives after a batch can be laid out at any time: nothing that is decided later changes it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.deployments import Deployment, local_stream, random_plan
from engines.streams import batches_of
from ps2stream.errors import StateError


@given(st.integers(0, 1 << 32))
@settings(max_examples=10, deadline=None)
def test_what_lives_stays_as_it_was_whatever_is_decided_and_moved_later(seed: int) -> None:
    rng = random.Random(seed)
    deployment = Deployment(random_plan(rng))
    taken = []
    for batch in batches_of(local_stream(120, seed), 15):
        deployment.disturb(rng)
        deployment.process(batch)
        if deployment.registrar.registry.should_compact() or rng.random() < 0.3:
            deployment.registrar.registry = deployment.registrar.registry.compacted(0)
        taken.append((deployment.registrar.living(), deployment.segments, deployment.snapshot()))
    for living, segments, snapshot in taken:
        assert living.rows(segments) == snapshot
        assert living.seqs.tolist() == snapshot.column("seq_from").to_pylist()
    assert taken[-1][0].plan_numbers == deployment.registrar.plan_numbers


def test_a_log_that_lacks_what_lives_makes_no_snapshot() -> None:
    deployment = Deployment(random_plan(random.Random(1)))
    for batch in batches_of(local_stream(60, 1), 15):
        deployment.process(batch)
    living = deployment.registrar.living()
    for wrong in (deployment.segments[1:], [*deployment.segments, deployment.segments[-1]]):
        with pytest.raises(StateError, match=r"must begin each of the \d+ subscriptions that live once"):
            living.rows(wrong)
