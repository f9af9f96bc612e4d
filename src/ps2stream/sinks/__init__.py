"""Where do matches and rejected records go?

Into a :class:`~ps2stream.sinks.sink.Sink`; start with ``sink.py``. Mergers write matches, each those of one
worker; the registrar and the mergers write rejected records. ``parquet.py`` writes files that any tool reads,
into a store; ``kafka.py`` records of topics, in transactions, to partitions by subscription
(``partitions.py``); ``memory.py`` keeps tables, for tests.

Crash rules. The contents of a batch are a function of its number, so writing it again changes nothing: what
is written under (batch, merger), or (batch, source), is there once, as a whole; files replace what was there,
of records the first ones count. That is what makes delivery exactly once. A sink belongs to one job
(``claim``), because the batches of another would clash with its own.

The contract tests (``tests/sinks/test_contract.py``) run on every kind of sink.
"""
