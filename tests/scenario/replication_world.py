"""A few brokers with one partition, real logs on simulated disks, and a network that does what a text says.

The replicas are the real machines of `headrace.replication`, and a leader serves a fetch with the code of the
broker. The controller is a single row that the text changes. After every step this checks what must never
happen to a committed record, whoever leads:

- what was once below a high watermark never changes and is never missing where a leader of the present row
  stands;
- "latest" never goes back.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from headrace.broker.fetch.read_result import PartitionAnswer
from headrace.broker.fetch.reading import Reader, serve_replica
from headrace.broker.fetch.watched_partition import FetchKey, WatchedPartition
from headrace.broker.requests.errors import code_of
from headrace.core.errors import HeadraceError
from headrace.log import files
from headrace.log.claims_file import FirstBatch
from headrace.log.read_ahead import ReadAhead
from headrace.log.read_state import ColdRead
from headrace.metrics.registry import TopicMetrics
from headrace.protocol.replica_fetch_codec import FetchedPartitionData
from headrace.replication.assignment import Assignment, IsrProposal, concerns_this_process
from headrace.replication.following import FetchPosition
from headrace.replication.partition import ACKS_ALL, Partition
from headrace.replication.safeguards import Safeguards
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, PARTITION, batch_of, open_at, read_records, topic_config
from tests.unit.replication.replicas import fetched

TOPIC_ID = UUID(int=3)
LAG_SECONDS = 30.0
MAX_BYTES = 1 << 20


class Violation(AssertionError):
    """Something that must never happen has happened."""


class Exchange(NamedTuple):
    """A fetch on its way: what was asked, by which process, and the answer once there is one."""

    replica_id: int
    broker_epoch: int
    leader_id: int
    sent: FetchPosition
    answer: FetchedPartitionData | None = None


class Broker:
    """One process at a time, and the disk that outlives it."""

    def __init__(self, world: World, broker_id: int) -> None:
        self._world = world
        self.broker_id = broker_id
        self.disk = SimulatedDisk(seed=broker_id)
        self.broker_epoch = 0
        self.is_running = False
        self._noted: FirstBatch | None = None
        """What its claims say of its log."""
        self.start()

    def start(self) -> None:
        world = self._world
        world.last_epoch += 1
        self.broker_epoch = world.last_epoch
        self.is_running = True
        log = open_at(
            self.disk,
            "/data",
            config=topic_config(min_insync_replicas=world.min_isr, flush_messages=world.flush_messages),
            first_batch=self._noted,
        )
        self.partition = Partition(PARTITION, TOPIC_ID, log, TopicMetrics(), safeguards=world.safeguards)

    def kill(self) -> None:
        """The process dies; what it wrote stays, in the memory of the host."""
        self.is_running = False
        self.disk.kill()

    def lose_power(self) -> None:
        self.is_running = False
        self.disk.crash(keep=0.0)

    def sync(self) -> None:
        self.partition.log.flush()
        self._noted = self.partition.log.first_batch

    def swap(self, values: list[str]) -> None:
        """While it is down its file becomes that of another log, of the same epoch."""
        other = SimulatedDisk(seed=0)
        log = open_at(other, "/data")
        for value in values:
            batch, header = batch_of(value.encode())
            log.append_as_leader(batch, header, leader_epoch=self._world.row.leader_epoch, now_ms=NOW)
        path = log.segments[-1].path(files.LOG)
        self.disk.put(path, other.content(path))

    def values(self) -> dict[int, str]:
        return {record.offset: (record.value or b"").decode() for record in read_records(self.partition.log)}


class World:
    def __init__(self, safeguards: Safeguards, *, min_isr: int = 1, flush_messages: int = 1 << 62) -> None:
        self.safeguards = safeguards
        self.min_isr = min_isr
        self.flush_messages = flush_messages
        self.now = 0.0
        self.last_epoch = 100
        self.brokers = {broker_id: Broker(self, broker_id) for broker_id in (1, 2, 3)}
        self.registered = {each.broker_id: each.broker_epoch for each in self.brokers.values()}
        self.row = Assignment(-1, 0, 0, (1, 2, 3), (1, 2, 3))
        self.committed: dict[int, str] = {}
        """By offset: everything that was ever below a high watermark."""
        self.latest = -1
        self.acknowledged: dict[str, str] = {}
        self._producing: list[str] = []

    # --- the controller -----------------------------------------------------------------------------------

    def elect(self, leader: int, leader_epoch: int, isr: tuple[int, ...]) -> None:
        self.row = Assignment(leader, leader_epoch, self.row.partition_epoch + 1, self.row.replicas, isr)

    def change_isr(self, isr: tuple[int, ...]) -> None:
        self.row = self.row._replace(isr=isr, partition_epoch=self.row.partition_epoch + 1)

    def hear(self, broker_ids: tuple[int, ...]) -> None:
        """These brokers learn of the present row, if they run and it is said to them."""
        for broker_id in broker_ids:
            broker = self.brokers[broker_id]
            if broker.is_running and concerns_this_process(
                self.registered.get(broker_id), broker.broker_epoch, self.safeguards
            ):
                broker.partition.assign(self.row, broker_id, self.now)

    def grant(self, proposal: IsrProposal) -> bool:
        """What a controller checks before it commits an ISR."""
        if (proposal.leader_epoch, proposal.partition_epoch) != (
            self.row.leader_epoch,
            self.row.partition_epoch,
        ):
            return False
        for member, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True):
            if epoch not in (-1, self.registered.get(member)):
                return False
        self.change_isr(proposal.isr)
        return True

    def broker_state(self, broker_id: int) -> int | None:
        return self.registered.get(broker_id)

    def look(self, leader: int) -> IsrProposal | None:
        partition = self.brokers[leader].partition
        proposal = partition.proposed_isr(self.now, LAG_SECONDS, self.broker_state)
        return proposal if proposal is not None and partition.propose(proposal) else None

    # --- clients ------------------------------------------------------------------------------------------

    def append(self, leader: int, value: str, acks: int) -> None:
        """Raises what the leader refuses it with."""
        batch, header = batch_of(value.encode())
        partition = self.brokers[leader].partition
        result = partition.append(batch, header, acks=acks, now_ms=NOW)
        if acks == ACKS_ALL:
            self._producing.append(value)
            partition.await_commit(result.last_offset + 1, self, len(self._producing) - 1)

    def on_decided(self, token: int, error: HeadraceError | None) -> None:
        self.acknowledged[self._producing[token]] = "ok" if error is None else type(error).__name__

    def ask_latest(self, leader: int) -> int | None:
        partition = self.brokers[leader].partition
        if not partition.knows_the_end:
            return None
        if partition.high_watermark < self.latest:
            raise Violation(
                f"broker {leader} says that the end is {partition.high_watermark}: it was {self.latest}"
            )
        self.latest = partition.high_watermark
        return self.latest

    # --- fetches ------------------------------------------------------------------------------------------

    def ask(self, replica_id: int) -> Exchange | None:
        """None if that broker has nothing to ask, or has to wait."""
        broker = self.brokers[replica_id]
        sent = broker.partition.fetch_position() if broker.is_running else None
        if sent is None:
            return None
        return Exchange(replica_id, broker.broker_epoch, broker.partition.leader_id, sent)

    def serve(self, exchange: Exchange) -> Exchange:
        sent = exchange.sent
        leader = self.brokers[exchange.leader_id]
        want = WatchedPartition(
            FetchKey("", TOPIC_ID, 0),
            sent.fetch_offset,
            MAX_BYTES,
            sent.current_leader_epoch,
            sent.last_fetched_epoch,
            sent.log_start_offset,
        )
        reader = Reader(
            exchange.replica_id, exchange.broker_epoch, MAX_BYTES, False, False, False, "", self.now, None
        )
        answer = PartitionAnswer(want)
        partition = leader.partition
        code, records = 0, b""
        try:
            if not leader.is_running:
                raise HeadraceError("nobody is there")
            try:
                serve_replica(partition, want, answer, reader, MAX_BYTES, min_one=True)
            except ColdRead as cold:
                job = ReadAhead(partition.log, cold.segment, cold.offset, MAX_BYTES)
                job.run()
                job.done()
                serve_replica(partition, want, answer, reader, MAX_BYTES, min_one=True)
        except HeadraceError as error:
            code = int(code_of(error))
        if answer.records is not None:
            records = answer.records.file.pread(answer.records.length, answer.records.position)
        data = FetchedPartitionData(
            0,
            code,
            partition.high_watermark,
            partition.log.log_start_offset,
            memoryview(records),
            answer.diverging,
        )
        return exchange._replace(answer=data)

    def apply(self, exchange: Exchange) -> str:
        broker = self.brokers[exchange.replica_id]
        assert exchange.answer is not None, "nobody has answered it yet"
        if not broker.is_running:
            return "NOBODY"
        return fetched(broker.partition, exchange.sent, exchange.answer).name

    # --- what must never happen -----------------------------------------------------------------------------

    def check(self) -> None:
        running = [broker for broker in self.brokers.values() if broker.is_running]
        for broker in running:
            values = broker.values()
            for offset in range(broker.partition.log.log_start_offset, broker.partition.high_watermark):
                if offset not in values:
                    raise Violation(f"broker {broker.broker_id} has nothing at {offset}, which is committed")
                known = self.committed.setdefault(offset, values[offset])
                if known != values[offset]:
                    raise Violation(
                        f"offset {offset} was {known}, and is {values[offset]} at broker {broker.broker_id}"
                    )
        for broker in running:
            partition = broker.partition
            if partition.is_leader and partition.leader_epoch == self.row.leader_epoch:
                values = broker.values()
                for offset, value in self.committed.items():
                    if offset >= partition.log.log_start_offset and values.get(offset) != value:
                        raise Violation(
                            f"broker {broker.broker_id} leads, and has {values.get(offset, 'nothing')} at"
                            f" {offset}, where {value} was committed"
                        )
