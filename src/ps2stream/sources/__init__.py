"""Where do the events of a batch come from?

From a few :class:`~ps2stream.sources.source.Source`, each of which says where some events lie and how many
there are. Start with ``source.py``. Through the engine's first steps go sources instead of events; the task
that needs the events reads them there. Nothing is carried from Python to the JVM and back before it has been
routed, and updates can be read without the publications between them.

- ``journal_range.py``: packets of a journal, the default. A batch is cut into as many ranges as there are
  dispatchers.
- ``spool.py``: events of a DataFrame that is not ours, written to files of this host or to the store first;
  those that come without a seq get theirs here.
- ``kafka_range.py``: offsets of a partition of a topic.
- ``event_log.py``: a finite log in Parquet, for ``replay``; it is read in batches and is no source by itself.

Events without an end are a :class:`~ps2stream.sources.feed.Feed`: ``journal_feed.py`` and ``kafka_feed.py``
say how far they go, and a loop takes range after range of them (``engines/batches.py``).

Crash rules. A source is a value: it can be sent to any process of the host and reads the same events each
time, so a batch that runs again is made of the same ones. A journal does not change what it has, and is
pruned only behind what is committed (``forget``). A spool is written again when its batch runs again; that it
then holds the same is up to the user's own stream.

The contract tests (``tests/sources/test_contract.py``) run on every kind of source.
"""
