"""The loop of the registrar: updates and loads in, the log out."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace

from ps2stream.adjusting.controller import Controller, LoadController
from ps2stream.balance.adjustments import Adjustment
from ps2stream.metrics.recorder import Recorder
from ps2stream.resident.committing import Commits
from ps2stream.resident.config import RoleConfig
from ps2stream.resident.controlling import Controlling
from ps2stream.resident.entries import Entry, to_records
from ps2stream.resident.log_tail import LOG, LogTail
from ps2stream.resident.notes import note_to_bytes
from ps2stream.resident.pace import Pace
from ps2stream.resident.registrar import ResidentRegistrar
from ps2stream.resident.rejecting import rejected_sends
from ps2stream.resident.reporting import Reporter
from ps2stream.resident.snapshotting import Snapshotting, Written, plans_of
from ps2stream.resident.trimming import Trimming
from ps2stream.resident.wire import Place, Received, Send, Topic, Wire
from ps2stream.roles.update_compiler import compile_updates

UPDATES, CONTROL, LOADS = Place(Topic.UPDATES), Place(Topic.CONTROL), Place(Topic.LOADS)
_STATUS_S = 5.0
#: Every entry of the log wakes all other roles: rather fewer of them.
_REST, _MOST_REST_S = 3.0, 0.03

#: Keep the record of an adjustment; or the status of the job.
KeepRecord = Callable[[Adjustment], None]
KeepStatus = Callable[[dict[str, object]], None]


class RegistrarLoop:
    """The registrar; ``step`` it until that says it is over."""

    def __init__(
        self,
        wire: Wire,
        config: RoleConfig,
        controller: Controller | None = None,
        keep_record: KeepRecord = lambda record: None,
        keep_status: KeepStatus = lambda status: None,
        beside: Executor | None = None,
    ) -> None:
        self._wire, self._config = wire, config
        self._order = config.order
        self._tokenizer = config.settings.tokenizer()
        tail = LogTail(wire, config.files, config.run)
        records = wire.read(LOG, tail.start)
        self._log_end = records[-1].offset + 1 if records else tail.start
        entries = [tail.snapshot, *tail.entries(records)]
        self._role = ResidentRegistrar(
            entries, config.files.read_plan, gives_order=not config.has_given_order
        )
        self._note, self._snapshot_plans = tail.note, plans_of(tail.snapshot)
        self._snapshotting = Snapshotting(config.files, beside)
        self._files_before: list[str] = []  # when the newest snapshot was begun
        self._recorder = Recorder("registrar", 0)
        self._reporter = Reporter(self._recorder, config.report_s)
        self._commits = Commits(wire, self._recorder, Pace(_REST, _MOST_REST_S))
        self._controlling = Controlling(controller, config.settings.n_workers, config.report_s)
        self._keep_record, self._keep_status = keep_record, keep_status
        self._status_at = 0.0
        self._is_stopped = tail.is_stopped  # by the one before, which did not live to see it
        self._trimming = Trimming(wire, config.trim_s)
        ends = {
            place: wire.ends(topic)[0] for place, topic in ((LOADS, Topic.LOADS), (CONTROL, Topic.CONTROL))
        }
        wire.follow({UPDATES: self._note.updates, **ends})

    def step(self, timeout_s: float = 0.1) -> bool:
        """Decide on what has come, once; return whether there is more to come."""
        if self._is_stopped:
            return False
        self._commits.rest()
        received: dict[Place, list[Received]] = {LOADS: [], UPDATES: [], CONTROL: []}
        for record in self._wire.poll(timeout_s):
            received[record.place].append(record)
        started = time.thread_time()
        self._controlling.take(received[LOADS])
        sends = self._decide(received[UPDATES])
        sends += self._adjust()
        sends += self._obey(received[CONTROL])
        self._recorder.count("busy_seconds", time.thread_time() - started)
        if self._reporter.is_due():
            self._recorder.set("position", self._role.upto)
            self._recorder.set("horizon", self._controlling.horizon)
            self._recorder.set("subscriptions", self._role.n_subscriptions)
            sends += self._reporter.sends()
            self._tell_status()
        if sends:
            self._commit(sends)
        if not self._is_stopped:  # a stop stays behind the newest snapshot: who starts late must find it
            self._snapshot_when_due()
        self._trimming.when_due({})
        return not self._is_stopped

    def _decide(self, records: list[Received]) -> list[Send]:
        """Decide on updates; what they came to goes to the log, what is wrong with them elsewhere."""
        if not records:
            return []
        self._role.compact(self._controlling.horizon)
        updates, unread, upto = self._order.updates(records)
        compiled, malformed = compile_updates(updates, self._tokenizer)
        entry, rejected = self._role.decide(compiled, upto)
        self._note = replace(self._note, updates=records[-1].offset + 1)
        self._recorder.count("updates", updates.num_rows)
        self._controlling.n_updates += updates.num_rows
        sends = self._logged(entry)
        for batch in (unread, malformed, rejected):
            self._recorder.count("rejected_records", batch.num_rows)
            sends += rejected_sends(batch)
        return sends

    def _adjust(self) -> list[Send]:
        """Let the controller adjust the load, if it has seen anything new.

        A snapshot that is due goes first, and has to wait for the adjustment before: one after the other
        would put it off for ever, and with it all that it lets go of.
        """
        controller = self._controlling.asked()
        if controller is None or self._is_snapshot_due():
            return []
        adjusted = self._role.adjust(
            self._note.n_adjustments,
            controller,
            self._controlling.contents(self._role.registrar.plan.grid.n_cells),
            self._config.files.write_plan,
        )
        for known in self._controlling.completed():
            self._keep_record(known)
        if adjusted is None:
            return []
        self._note = replace(self._note, n_adjustments=self._note.n_adjustments + 1)
        self._recorder.count("adjustments")
        self._controlling.began(adjusted.record, adjusted.entry.since)
        self._keep_record(adjusted.record)
        return self._logged(adjusted.entry)

    def _obey(self, records: list[Received]) -> list[Send]:
        """Do what the driver asks for."""
        sends = []
        for record in records:
            word, _, run = (record.value or b"").decode().partition(" ")
            if word == "stop" and run == self._config.run:
                self._is_stopped = True
                sends += self._logged(self._role.stop(run))
            elif word == "repartition":
                self._controlling.request_repartition()
        return sends

    def _logged(self, entry: Entry) -> list[Send]:
        return [Send(LOG, record) for record in to_records(entry)]

    def _commit(self, sends: list[Send]) -> None:
        offsets = self._commits.commit(sends, note_to_bytes(self._note))
        written = [offset for send, offset in zip(sends, offsets, strict=True) if send.place == LOG]
        self._log_end = max([self._log_end, *(offset + 1 for offset in written)])

    def _snapshot_when_due(self) -> None:
        """Begin a snapshot of the log so far, unless one is under way; note it when it is written."""
        horizon = self._controlling.horizon
        if not self._snapshotting.is_busy and self._is_snapshot_due() and self._role.may_snapshot(horizon):
            self._role.compact(horizon)
            self._snapshotting.begin(self._role.snapshot(horizon), self._log_end)
        written = self._snapshotting.written()
        if written is not None:
            self._role.has_snapshot(written.snapshot)
            self._note_snapshot(written)

    def _note_snapshot(self, written: Written) -> None:
        """Let a snapshot stand for the log before it, and let go of what the one before it stood for.

        That one stays until the next, the log behind it, and plans that this names: a role may be about to
        read them. Plans are written before the log names them, so it names none that was there when the
        snapshot before was begun, but for those that this one names, too.
        """
        before, plans_before = self._note, self._snapshot_plans
        self._snapshot_plans = written.plans
        self._note = replace(before, snapshot=written.key, log=written.log, snapshot_before=before.snapshot)
        self._commit([])
        used = {before.snapshot, *written.plans, *plans_before}
        self._config.files.remove([key for key in self._files_before if key not in used])
        self._files_before = written.files
        self._wire.trim({LOG: before.log})

    def _is_snapshot_due(self) -> bool:
        return self._role.is_snapshot_due(self._config.snapshot_every)

    def _tell_status(self) -> None:
        if self._controlling.controller is None or time.monotonic() < self._status_at:
            return
        from ps2stream.adjusting.status import status_of

        self._status_at = time.monotonic() + _STATUS_S
        if isinstance(self._controlling.controller, LoadController):
            number = self._note.n_adjustments
            status = status_of(self._controlling.controller, self._role.registrar, number)
            self._keep_status({**status, "position": self._role.upto})
