"""The Spark engines: the only package that imports pyspark.

session   a local session with settings that suit us
daemon    the process that Spark forks its Python processes from
source    a journal as a Spark stream
stages    the roles as Spark runs them
job       one micro-batch after the other
stream    start the engine on a journal, or on a DataFrame of the user's own
watch, meter   what a running stream reports
"""

from __future__ import annotations

from ps2stream.engines.spark.session import local_session
from ps2stream.engines.spark.source import JournalSource
from ps2stream.engines.spark.stream import (
    events_stream,
    journal_stream,
    match_events,
    read_matches,
    stream_matches,
)

__all__ = [
    "JournalSource",
    "events_stream",
    "journal_stream",
    "local_session",
    "match_events",
    "read_matches",
    "stream_matches",
]
