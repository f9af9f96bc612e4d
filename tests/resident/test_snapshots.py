"""Snapshots of the registrar: what they let go of, and what they must not."""

from __future__ import annotations

import pytest

from laws.engines import one_batch
from ps2stream.config import Settings
from ps2stream.errors import FencedError
from ps2stream.resident.wire import REGISTRAR, RoleName
from ps2stream.testing.generators import random_events
from resident.rig import Rig
from resident.test_laws import assert_as_the_oracle_says


def test_a_registrar_that_was_taken_over_removes_no_file_of_its_successor() -> None:
    events = random_events(200, seed=1)
    rig = Rig.of(Settings(n_workers=2), one_batch(events), seed=1, snapshot_every=10)
    rig.pour(events)
    rig.run(n_steps=150)
    zombie = rig.loops[RoleName(REGISTRAR)]
    commit = zombie._wire.commit

    def commit_and_be_cut_off(*arguments: object) -> object:
        """Stand for a host that is cut off after a commit, while another registrar does all the rest."""
        done = commit(*arguments)
        rig.start(RoleName(REGISTRAR))
        rig.run()
        return done

    zombie._wire.commit = commit_and_be_cut_off
    zombie._role.n_since_snapshot = 10_000  # a snapshot is due
    zombie._snapshot_when_due()
    zombie._wire.commit = commit
    with pytest.raises(FencedError):
        zombie._commit([])
    for role in rig.roles:  # what the successor wrote is there for all who start now
        rig.start(role)
    assert_as_the_oracle_says(rig, events)
