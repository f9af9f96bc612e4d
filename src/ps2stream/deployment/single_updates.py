"""Updates given on the command line itself: checked, appended, and their seqs returned."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ps2stream.deployment.home import Home
from ps2stream.deployment.records import CORNERS
from ps2stream.errors import ConfigError, quoted
from ps2stream.journal import Journal
from ps2stream.model.expressions import parse
from ps2stream.model.limits import check_length
from ps2stream.model.schemas import EVENTS, SUBSCRIBE, UNSUBSCRIBE
from ps2stream.model.space import Region
from ps2stream.model.squares import Bounds
from ps2stream.text.tokenizer import Tokenizer


def subscribe(home: Home, subscription_id: str, expression: str, bounds: Bounds) -> int:
    """Append a subscription; raise what is wrong with it, an error in the expression with its position."""
    if not subscription_id:
        raise ConfigError("the id of a subscription must be a non-empty string; got an empty one")
    if reason := check_length("id", subscription_id):
        raise ConfigError(f"subscription {quoted(subscription_id)}: {reason}")
    parse(expression).without(Tokenizer(home.stop_words()).stop_words)
    Region(*bounds)
    event: dict[str, object] = {"op": SUBSCRIBE, "id": subscription_id, "expression": expression}
    event |= dict(zip(CORNERS, bounds, strict=True))
    with Journal.open(home.journal, create=True) as journal:
        return journal.append(pa.RecordBatch.from_pylist([event], schema=EVENTS)).first_seq


def unsubscribe(home: Home, subscription_ids: Sequence[str]) -> list[int]:
    """Append the ends of subscriptions, all or none; return their seqs."""
    events = [{"op": UNSUBSCRIBE, "id": subscription_id} for subscription_id in subscription_ids]
    with Journal.open(home.journal) as journal:
        appended = journal.append(pa.RecordBatch.from_pylist(events, schema=EVENTS))
    return list(range(appended.first_seq, appended.last_seq + 1))
