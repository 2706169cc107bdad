"""A replica of one partition on a broker that may stop, be frozen, or not know that it leads no more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.core.ports_objects import Absent, Done, Found, OutcomeUnknown
from headrace.tier.beginning import BeginAt, Wait
from headrace.tier.calls import Call, Get, Outcome, PutIf, Steps
from headrace.tier.collecting import StartJob
from headrace.tier.jobs import Job
from headrace.tier.knowledge import Result
from headrace.tier.machine import PartitionTier
from headrace.tier.manifest_format import decode
from headrace.tier.names import TieredPartition
from tests.simulation.tier.checks import InvariantBroken, require
from tests.simulation.tier.logs import Record, ReplicaLog, common

if TYPE_CHECKING:
    from tests.simulation.tier.topics import Topic

DEADLINE_SECONDS = 5.0


@dataclass(slots=True)
class Broker:
    broker_id: int
    roll_records: int
    is_alive: bool = True
    is_frozen: bool = False
    boot: int = 0
    thawed: list[Callable[[], None]] = field(default_factory=list)
    """What happens when it goes on."""

    @property
    def runs(self) -> bool:
        return self.is_alive and not self.is_frozen


@dataclass(slots=True)
class Row:
    """What the controller has committed of a partition."""

    leader: int
    epoch: int
    isr: frozenset[int]
    is_recovering: bool = False
    """Elected from outside of the ISR, and has not begun yet."""


class Replica:
    def __init__(self, topic: Topic, broker: Broker) -> None:
        self.topic = topic
        self.broker = broker
        self.log = ReplicaLog(broker.roll_records)
        self.row = Row(-1, -1, frozenset())
        """As this broker has heard of it."""
        self.writer: UUID | None = None
        self.is_deleter = False
        self.is_gone = False
        self._reconciled = -1
        self._acked: dict[int, int] = {}
        self._led_from = 0
        """Where its log ended when it began to lead."""
        self.restart()

    @property
    def name(self) -> str:
        return f"broker {self.broker.broker_id}"

    @property
    def is_leader(self) -> bool:
        return self.broker.is_alive and self.row.leader == self.broker.broker_id

    def restart(self) -> None:
        """What was in memory is gone. What it had asked of the store goes on."""
        self.machine = PartitionTier(self.topic.place, self.topic.settings, self.topic.draw)
        self.row = Row(-1, -1, frozenset())
        self._reconciled = -1
        self.fenced: set[int] = set()
        """Epochs in which it led, until it saw a manifest of a later leader."""
        self.read_end = -1
        """How far the manifests go that this process has read."""
        self.log.high_watermark = min(self.log.high_watermark, max(self.log.end - 2, 0))

    # --- replication -----------------------------------------------------------------------------------

    def hear(self, row: Row) -> None:
        if row.epoch < self.row.epoch or self.is_deleter:
            return
        is_new = row.epoch != self.row.epoch
        self.row = Row(row.leader, row.epoch, row.isr, row.is_recovering)
        if not is_new:
            self._advance()
            return
        self._acked = {}
        self._led_from = self.log.end
        if row.leader == self.broker.broker_id:
            self.writer = self.topic.draw()
            self.machine.lead(row.epoch, self.writer, may_lack_committed=row.is_recovering)
            self._advance()
        else:
            self.machine.follow()

    def append(self, record: Record) -> None:
        if self.is_leader and self.machine.is_begun:
            self.log.append(record._replace(epoch=self.row.epoch))
            self._advance()

    def follow_from(self, leader: Replica, most: int) -> None:
        log, theirs = self.log, leader.log
        if self.row.epoch != leader.row.epoch or not leader.is_leader or not leader.machine.is_begun:
            return
        if self._reconciled != self.row.epoch:
            cut = common(log.records, theirs.records)
            if cut >= log.local_start:
                log.truncate(cut)
        fits = log.end >= theirs.local_start and common(log.records, theirs.records) == log.end
        if not fits and not self._begin_at(leader):
            return
        self._reconciled = self.row.epoch
        for record in theirs.records[log.end : log.end + most]:
            log.append(record)
        log.start = max(log.start, min(theirs.start, log.end))
        log.high_watermark = max(log.high_watermark, min(theirs.high_watermark, log.end))
        leader.on_fetch(self.broker.broker_id, log.end)

    def _begin_at(self, leader: Replica) -> bool:
        """Leave to the store what the leader has no longer."""
        theirs = leader.log
        offset = theirs.local_start
        before = theirs.records[offset - 1].epoch if offset else -1
        if not self.machine.may_begin_at(offset, theirs.start, before):
            return False
        self._require_read(max(theirs.start, self.topic.checks.start), offset)
        self.log.begin_anew(theirs.records[:offset], theirs.start)
        self.topic.checks.count("begun at the leader's")
        return True

    def on_fetch(self, follower: int, end: int) -> None:
        self._acked[follower] = end
        self._advance()

    def caught_up(self, follower: int) -> bool:
        """As Kafka has it: what was committed before this leader may lie above its high watermark."""
        return self._acked.get(follower, -1) >= max(self.log.high_watermark, self._led_from)

    def _advance(self) -> None:
        if not self.is_leader or not self.machine.is_begun:
            return
        others = (self._acked.get(each, 0) for each in self.row.isr if each != self.broker.broker_id)
        committed = min((self.log.end, *others))
        if committed > self.log.high_watermark:
            self.log.high_watermark = committed
        self.topic.checks.truth.commit(self.row.epoch, self.log)

    # --- the tier --------------------------------------------------------------------------------------

    def tick(self) -> None:
        """What a broker does every second."""
        if not self.broker.runs or self.is_gone:
            return
        machine, log, now_ms = self.machine, self.log, self.topic.now_ms()
        if self.is_leader and not machine.is_begun:
            self._begin()
        if self.is_leader and machine.is_begun:
            log.start = max(log.start, min(machine.start or 0, log.end))
        if not self.is_deleter:
            self._delete_local(machine.local_until(log, now_ms))
        job = machine.take(log, now_ms)
        if job is not None:
            self._start(job)

    def _begin(self) -> None:
        found = self.machine.begin(self.log)
        checks = self.topic.checks
        if isinstance(found, Wait):
            return
        if isinstance(found, BeginAt):
            log = self.log
            self._require_read(max(log.local_start, found.start), min(log.end, found.offset))
            log.begin_anew(checks.truth.records[: found.offset], found.start)
            checks.count("begun at the tier's end")
        start = max(checks.start, self.log.start)
        checks.truth.begin_line(self.row.epoch, self.log, start, checks.next_offset)
        checks.count("begun uncleanly")
        self._led_from = self.log.end
        self.topic.on_begun(self.row.epoch)
        self._advance()

    def _delete_local(self, until: int) -> None:
        log = self.log
        if until <= log.local_start:
            return
        self._require_read(max(log.local_start, log.start, self.machine.start or 0), until)
        log.delete_local(until)
        self.topic.checks.count("deleted locally")
        self.topic.checks.check_covered(log, self.name)

    def _require_read(self, first: int, until: int) -> None:
        """Rules 5 and 6: this very process has read that the store has it."""
        if first < until:
            number = 6 if self.read_end < 0 else 5
            where = f"{self.name} deletes {first} to {until}, and has read of {self.read_end}"
            require(self.read_end >= until, number, where)

    def _start(self, job: Job) -> None:
        machine, topic = self.machine, self.topic
        if isinstance(job, StartJob):
            topic.checks.check_start_job(self.log, job.start, topic.now_ms(), self.name)
            approved = topic.checks.approved
            writer = job.basis.leadership.writer
            approved[writer] = max(job.start, approved.get(writer, 0))
        topic.checks.count(type(job).__name__)
        leadership = machine.leadership
        runner = Runner(self, machine, job, -1 if leadership is None else leadership.epoch)
        runner.go_on(None)


class Runner:
    """A thread that carries out one job: it ends with its process, and stands still while that is frozen."""

    def __init__(self, replica: Replica, machine: PartitionTier, job: Job, epoch: int) -> None:
        self._replica = replica
        self._machine = machine
        self._job = job
        self._steps: Steps[Result] = job.run()
        self._boot = replica.broker.boot
        self._epoch = epoch
        self._must_settle = False

    def go_on(self, outcome: Outcome | None) -> None:
        broker, topic = self._replica.broker, self._replica.topic
        if broker.boot != self._boot or not broker.is_alive:
            return
        if broker.is_frozen:
            broker.thawed.append(lambda: self.go_on(outcome))
            return
        try:
            call = next(self._steps) if outcome is None else self._steps.send(outcome)
        except StopIteration as ended:
            self._machine.done(self._job, ended.value, topic.now_ms())
            self._replica.tick()
            return
        self._check(call)
        topic.submit(call, lambda outcome: self._on_outcome(call, outcome))

    def _check(self, call: Call) -> None:
        if self._must_settle and not isinstance(call, Get):
            raise InvariantBroken(9, f"{self._where(call)} after an unknown outcome")
        if self._epoch in self._replica.fenced and isinstance(call, PutIf):
            raise InvariantBroken(4, f"{self._where(call)} after a manifest of a later leader")

    def _where(self, call: Call) -> str:
        return (
            f"{self._replica.name} of epoch {self._epoch}: {type(self._job).__name__}, {type(call).__name__}"
        )

    def _on_outcome(self, call: Call, outcome: Outcome) -> None:
        topic = self._replica.topic
        if isinstance(call, PutIf):
            self._must_settle = isinstance(outcome, OutcomeUnknown)
        elif isinstance(call, Get) and call.key == topic.place.folder.manifest:
            self._must_settle = self._must_settle and not isinstance(outcome, Found | Absent)
        self._note_read(call, outcome)
        self.go_on(outcome)

    def _note_read(self, call: Call, outcome: Outcome) -> None:
        replica = self._replica
        data = None
        if isinstance(call, PutIf) and isinstance(outcome, Done):
            data = call.data
        elif isinstance(call, Get) and isinstance(outcome, Found) and not call.key.endswith(".page"):
            data = outcome.data
        if data is None or replica.broker.boot != self._boot:
            return
        epoch, end = _read(data, replica.topic.place.partition)
        replica.read_end = max(replica.read_end, end)
        if 0 <= self._epoch < epoch:
            replica.fenced.add(self._epoch)


@lru_cache(maxsize=64)
def _read(data: bytes, partition: TieredPartition) -> tuple[int, int]:
    manifest = decode(data, partition)
    return manifest.epoch, manifest.next_offset
