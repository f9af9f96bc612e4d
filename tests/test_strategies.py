"""The strategies draw what they promise; a law tested on logs without matches proves nothing."""

import pyarrow as pa
from hypothesis import Phase, find, given, settings

from ps2stream.model.expressions import parse
from ps2stream.model.schemas import EVENTS
from ps2stream.testing import oracle
from strategies import event_logs, expressions, flat_expressions, regions

SEARCH = settings(max_examples=300, database=None, deadline=None, phases=[Phase.generate])


@given(expressions, flat_expressions)
@settings(max_examples=50, deadline=None)
def test_expressions_parse(nested: str, flat: str) -> None:
    assert parse(nested).clauses()
    assert parse(flat).clauses()
    assert "(" not in flat


@given(event_logs(broken=False))
@settings(max_examples=50, deadline=None)
def test_unbroken_logs_reject_nothing_but_unknown_unsubscribes(log: pa.Table) -> None:
    assert log.schema == EVENTS
    assert {rejection.op for rejection in oracle.run(log).rejected} <= {"unsubscribe"}


def test_logs_with_several_matches_and_rejections_are_found() -> None:
    def is_rich(log: pa.Table) -> bool:
        outcome = oracle.run(log)
        return len(outcome.matches) > 2 and len(outcome.rejected) > 1

    assert find(event_logs(), is_rich, settings=SEARCH).num_rows > 3


def test_regions_across_the_antimeridian_and_points_are_found() -> None:
    assert find(regions, lambda region: region[0] > region[2], settings=SEARCH)
    assert find(regions, lambda region: region[0] == region[2] and region[1] == region[3], settings=SEARCH)
