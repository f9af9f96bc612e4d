"""The embedded journal: a durable, append-only log of events in a directory.

Many processes may append and read at the same time. An append is one transaction of SQLite in
write-ahead mode: when it returns, its events are on disk; when the process dies before that,
none of them is there. Events get their ``seq`` inside that transaction, so the order of
sequence numbers is the order of commits, without a gap.

    packets     events <-> the two Arrow IPC streams of a packet, and their checksums
    database    the SQLite file: creation, settings, what its errors mean
    journal     append, read, prune; open it first
    positions   where a seq lies

A *packet* is one row: up to ``packets.MAX_PACKET_EVENTS`` events of one append, kept as two
Arrow IPC streams, publications and updates (everything else), because the engine needs the
updates of a whole range first and reads them without touching the publications. *Positions*
number the packets 1, 2, 3, ...; a reader's progress is a position.

The directory must be on a local file system: the write-ahead log is shared through memory.
"""

from __future__ import annotations

from ps2stream.journal.journal import Appended, End, Journal
from ps2stream.journal.packets import JournalPacket, PacketSpan

__all__ = ["Appended", "End", "Journal", "JournalPacket", "PacketSpan"]
