from __future__ import annotations

import pytest

from ps2stream.matcher import event_table
from ps2stream.model.publications import Publication
from ps2stream.model.space import Region
from ps2stream.model.subscriptions import Subscription
from ps2stream_bench.peers.ps2stream_peers import PS2StreamInline, settings_of

EVERYWHERE = Region(-180.0, -90.0, 180.0, 90.0)


def test_a_stream_that_runs_backwards_is_refused_and_not_measured() -> None:
    peer = PS2StreamInline(settings_of())
    peer.load(event_table([Subscription("a", "fire", EVERYWHERE)], first_seq=1))
    publications = event_table([Publication("p", "fire", 0.0, 0.0)], first_seq=2)
    assert peer.match(publications).to_pylist() == [{"subscription_seq": 1, "publication_seq": 2}]
    with pytest.raises(ValueError, match="seqs must rise; 1 were rejected"):
        peer.match(publications)


def test_nothing_is_adjusted_while_peers_are_compared() -> None:
    settings = settings_of(["the"], n_workers=3)
    assert (settings.adjustment.scope, settings.n_workers, settings.stop_words) == ("off", 3, ("the",))
