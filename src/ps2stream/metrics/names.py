"""Every metric that there is: its name, its kind and what it means.

Help texts of the endpoint, the table in ``docs/observability.md`` and the dashboard are made from this list,
or checked against it. Names end in their unit where they have one (``_seconds``, ``_bytes``), as Prometheus
wants it; those without count things.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

#: What all names begin with, where they are exposed.
PREFIX = "ps2stream"
#: Between the name of a metric and the value of its label: ``lag_events@alerts.updates``.
LABEL_MARK = "@"


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"  # always 1; what it says is in its labels


class Metric(NamedTuple):
    """One metric; ``label``: what its values are told apart by, beside role and number."""

    name: str
    kind: Kind
    roles: str
    meaning: str
    label: str = ""

    @property
    def exposed(self) -> str:
        """Return the name that Prometheus knows."""
        return f"{PREFIX}_{self.name}{_ENDINGS.get(self.kind, '')}"


_C, _G, _H, _I = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM, Kind.INFO
_ENDINGS = {_C: "_total", _I: "_info"}

METRICS = (
    Metric("publications", _C, "dispatcher", "Publications read and routed."),
    Metric("discarded_publications", _C, "dispatcher", "Of them, those that no worker can match."),
    Metric("sent_publications", _C, "dispatcher", "Copies sent to workers: one for each worker concerned."),
    Metric("received_publications", _C, "worker", "Copies of publications matched."),
    Metric("candidates", _C, "worker", "Subscriptions looked at for a publication."),
    Metric("matches", _C, "worker", "Subscriptions found to match a publication."),
    Metric("delivered_matches", _C, "merger or worker", "Matches handed to the sink."),
    Metric("updates", _C, "registrar", "Subscribe and unsubscribe events decided on."),
    Metric("applied_updates", _C, "worker", "Rows of the subscription log applied to the index."),
    Metric("rejected_records", _C, "any", "Records that left by the rejected output."),
    Metric("busy_seconds", _C, "any", "CPU time spent on work."),
    Metric("batches", _C, "driver or any", "Batches finished; of a resident role, commits."),
    Metric("rebuilds", _C, "worker", "Times that an index had to be built anew from snapshot and log."),
    Metric("moves", _C, "worker", "Times that a worker came up on another host."),
    Metric("restarts", _C, "any", "Times that the role, or as driver the stream, was started again."),
    Metric("adjustments", _C, "driver or registrar", "Load adjustments made, local and global."),
    Metric("store_requests", _C, "any", "Requests to object stores."),
    Metric("subscriptions", _G, "registrar", "Live subscriptions."),
    Metric("stored_subscriptions", _G, "worker", "Subscriptions in the index, each wherever it is stored."),
    Metric("index_bytes", _G, "worker", "Size of the index."),
    Metric(
        "lag_events",
        _G,
        "who reads it",
        "Events appended and not processed yet; of a topic of Kafka, records.",
        "topic",
    ),
    Metric("log_lag_events", _G, "dispatcher, worker", "Rows of the subscription log not applied yet."),
    Metric("position", _G, "any", "The seq up to which the role has got on."),
    Metric("horizon", _G, "any", "The smallest seq that can still come to the role."),
    Metric("age_seconds", _G, "any", "Time since the role was last heard of."),
    Metric("delivery_latency_seconds", _H, "who delivers", "From the append of an event to its delivery."),
    Metric("batch_seconds", _H, "driver or any", "Duration of a batch, from its begin to its commit."),
    Metric(
        "commit_seconds", _H, "who commits", "Time to make a batch durable: a transaction, or the ledger."
    ),
    Metric("role", _I, "any", "Always 1; its labels are the host that the role is on, and the engine."),
)

#: The same by name.
BY_NAME = {metric.name: metric for metric in METRICS}


def labelled(name: str, value: str) -> str:
    """Return the key of a metric that has a label: ``labelled("lag_events", "alerts.updates")``."""
    return f"{name}{LABEL_MARK}{value}"


def metric_of(key: str) -> tuple[Metric | None, str]:
    """Return which metric a key means, None where there is no such, and the value of its label."""
    name, _, value = key.partition(LABEL_MARK)
    return BY_NAME.get(name), value
