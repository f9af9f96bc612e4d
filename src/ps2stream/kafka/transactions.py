"""Producers with transactions: how one becomes the only one of its name."""

from __future__ import annotations

import time

from confluent_kafka import KafkaException, Producer

from ps2stream.kafka.client import PATIENCE_S

_ASK_S = 30.0
_PAUSE_S = 0.2


def init_transactions(producer: Producer) -> None:
    """Become the only producer of a transactional id; what its predecessor left open is aborted."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            producer.init_transactions(_ASK_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)
