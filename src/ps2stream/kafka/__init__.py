"""How do events come from Kafka, and how do matches go there?

Start with ``topics.py``: which topics a deployment has. Events are read by ranges of offsets, which the
ledger writes down before a batch runs; whoever reads a range gets the same events with the same seqs.

    client       where the brokers are; consumers, producers, settings from a file
    topics       the names of topics; make, trim and delete them
    ends         how far they go
    reading      the committed records of a range
    decoding     records to events: JSON, GeoJSON, packets of Arrow
    encoding     events to records
    numbering    the seqs of events
    positions    which batch had a record, as the job has written it down
    sending      records of publishers, acknowledged
    delivering   what a job writes, in transactions, each part of a batch once
    claims       whose output it is

``sources/kafka_feed.py`` and ``sources/kafka_range.py`` make batches of it, ``sinks/kafka.py`` a sink.
Brokers that are away are waited for, two minutes long. The only package that imports Kafka's client
(librdkafka by ``confluent-kafka``): Spark's own connector is a jar, and hands over every record on its own.
"""

from __future__ import annotations

from ps2stream.extras import require

# Before the modules of this package import the client: its own ImportError would not say what to install.
require("ps2stream.kafka", "kafka")
