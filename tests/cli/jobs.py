"""A job without Spark on the journal of a home: it leaves what the real one leaves, also in a store."""

from __future__ import annotations

import pyarrow as pa

from ps2stream.config import Settings
from ps2stream.deployment.home import Home
from ps2stream.engines.inline import InlineEngine
from ps2stream.journal import Journal
from ps2stream.journal.packets import decode_events
from ps2stream.model.events import split
from ps2stream.model.schemas import EVENTS
from ps2stream.planning.first_plan import journal_sample, plan_of
from ps2stream.roles.registrar import Registrar
from ps2stream.roles.update_compiler import compile_updates
from ps2stream.sinks.parquet import ParquetSink
from ps2stream.state.host_files import HostFiles
from ps2stream.state.lease import Lease, LeaseTerms
from ps2stream.state.state import State
from ps2stream.store.urls import store_at

#: A lease that is not renewed while a test lasts.
SLOW = LeaseTerms(6_000.0)


class Job:
    """Process the packets of a journal, one a batch, when told to."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self._home = home
        self._tokenizer = settings.tokenizer()
        plan = plan_of(journal_sample(home.journal, settings), settings)
        store = store_at(home.state)
        self._unfenced = State(store, HostFiles(home.directory / "state"))
        self._lease = None if home.store is None else Lease(store, "process 1 of elsewhere", SLOW)
        if self._lease is None:
            self.state = self._unfenced.create(plan, settings)
        else:
            self._lease.acquire()
            self.state = self._unfenced.taken_over(self._lease).create(plan, settings).open(settings)
        self._registrar = Registrar(plan)
        self._engine = InlineEngine(plan, settings)
        self._sink = ParquetSink.at(home.out)
        self.position = 0

    def process(self, n_packets: int = 1 << 30) -> None:
        """Take the next packets: log, progress and matches are written as the real job does."""
        with Journal.open(self._home.journal) as journal:
            upto = min(journal.last().position, self.position + n_packets)
            for packet in journal.read(self.position, upto):
                events = decode_events(packet)
                compiled, _ = compile_updates(split(events)[1], self._tokenizer)
                segment = self._registrar.decide(compiled).segment
                is_changed = segment.num_rows > 0
                self.state.ledger.decide(
                    packet.position, segment if is_changed else None, self._registrar.plan_numbers
                )
                matches = self._engine.process(events).matches
                self._sink.write_matches(packet.position, 0, matches.to_batches())
                self.state.ledger.finish(packet.position, packet.last_seq)
                self.position = packet.position

    def start_again(self) -> None:
        """Go on in a new epoch, as after the death of a process of Spark."""
        assert self._lease is not None
        self._lease.advance()
        self.state = self._unfenced.taken_over(self._lease)

    def stop(self) -> None:
        """Let go of the lease, if there is one."""
        if self._lease is not None:
            self._lease.release()

    def snapshot(self) -> None:
        """Let a snapshot stand for the log."""
        if self.state.log.last() >= 0:
            self.state.snapshot(self.position, self._registrar)

    def prune(self) -> None:
        """Drop what was processed from the journal; its newest packet stays."""
        with Journal.open(self._home.journal) as journal:
            journal.prune(self.position)


def write_journal(home: Home, events: pa.Table, n_events_a_packet: int = 5) -> pa.Table:
    """Append events in small packets; return them with the seqs that they got."""
    parts = [EVENTS.empty_table()]
    with Journal.open(home.journal, create=True, durable=False) as journal:
        for start in range(0, events.num_rows, n_events_a_packet):
            journal.append(events.slice(start, n_events_a_packet))
        for packet in journal.read(0, journal.last().position):
            parts.append(pa.Table.from_batches([decode_events(packet)]))
    return pa.concat_tables(parts)
