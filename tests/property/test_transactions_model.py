"""Transactions in one partition against a plain list: a reader of committed records sees what the list says.

Two replicas, producers that interleave, commit and abort, with epochs that are raised at every end and with
epochs that are not. After every step the read_committed view of both replicas is read back as a client reads
it, with the aborted transactions that the broker names, in pieces of any size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.log.partition_log import PartitionLog
from headrace.log.producer_replay import apply_batch
from headrace.log.producer_state import ProducerStates
from headrace.metrics.registry import TopicMetrics
from headrace.protocol.control_records import ControlType, control_type
from headrace.replication.following import FetchOutcome
from headrace.replication.partition import Partition
from headrace.testing.disk import SimulatedDisk
from tests.unit.log.material import NOW, PARTITION, open_at, read_bytes, topic_config, whole_batches
from tests.unit.log.transactional_writes import end, write
from tests.unit.replication.replicas import BROKER_EPOCH, TOPIC_ID, answer, append, fetched, row

PRODUCERS = (10, 11, 12)
RAISES_EPOCHS = {10: True, 11: False, 12: True}


class Entry(NamedTuple):
    """One batch of the log. A marker has no values."""

    offset: int
    producer: int
    values: tuple[bytes, ...]
    commit: bool | None = None

    @property
    def next_offset(self) -> int:
        return self.offset + max(len(self.values), 1)


class Producer:
    def __init__(self, number: int) -> None:
        self.number = number
        self.epoch = 0
        self.sequence = 0


class TransactionsModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.config = topic_config(segment_bytes=250, index_interval_bytes=100)
        self.disks = {number: SimulatedDisk(number) for number in (1, 2)}
        self.replicas = {number: self._open(number, None, 0) for number in (1, 2)}
        self.settled = {1: 0, 2: 0}
        """Markers before this are taken for committed: a restart begins with what a snapshot says."""
        self.leader_id = 1
        self.epoch = 0
        self.lists: dict[int, list[Entry]] = {1: [], 2: []}
        """What each replica holds."""
        self.producers = {number: Producer(number) for number in PRODUCERS}
        self.count = 0
        self._elect(1)

    def _open(
        self, number: int, high_watermark: int | None, start: int, *, stopped_at: int | None = None
    ) -> Partition:
        """`stopped_at` is the end of a log that was stopped: its checkpoint says so."""
        log = open_at(
            self.disks[number],
            "/data",
            config=self.config,
            clean=stopped_at is not None,
            recovery_point=stopped_at or 0,
            log_start_offset=start,
        )
        return Partition(PARTITION, TOPIC_ID, log, TopicMetrics(), high_watermark=high_watermark)

    def _elect(self, number: int) -> None:
        self.epoch += 1
        self.leader_id = number
        for each, partition in self.replicas.items():
            partition.assign(row(number, self.epoch, (1, 2), replicas=(1, 2)), each, 0.0)
        self._learn()

    @property
    def leader(self) -> Partition:
        return self.replicas[self.leader_id]

    @property
    def follower(self) -> Partition:
        return self.replicas[3 - self.leader_id]

    @property
    def entries(self) -> list[Entry]:
        return self.lists[self.leader_id]

    def _learn(self) -> None:
        """What a producer would send next, by the log it now writes to."""
        for producer in self.producers.values():
            known = self.leader.log.producers.get(producer.number)
            producer.epoch = max(producer.epoch, known.epoch if known else 0)
            same = known is not None and known.epoch == producer.epoch
            producer.sequence = known.last_sequence + 1 if same and known is not None else 0

    def _is_open(self, number: int) -> bool:
        mine = [entry for entry in self.entries if entry.producer == number]
        return bool(mine) and mine[-1].commit is None

    def _values(self, count: int) -> tuple[bytes, ...]:
        self.count += 1
        return tuple(b"%d.%d" % (self.count, place) for place in range(count))

    # --- writing ---

    @rule(count=st.integers(1, 3))
    def write_plainly(self, count: int) -> None:
        values = self._values(count)
        self.entries.append(Entry(append(self.leader, *values), -1, values))

    @rule(number=st.sampled_from(PRODUCERS), count=st.integers(1, 3))
    def write_in_a_transaction(self, number: int, count: int) -> None:
        producer, values, log = self.producers[number], self._values(count), self.leader.log
        at = log.end_offset
        write(log, number, producer.sequence, *values, epoch=producer.epoch)
        producer.sequence += count
        self.entries.append(Entry(at, number, values))

    @precondition(lambda self: any(self._is_open(number) for number in PRODUCERS))
    @rule(data=st.data(), commit=st.booleans(), replicated=st.booleans())
    def end_a_transaction(self, data: st.DataObject, commit: bool, replicated: bool) -> None:
        number = data.draw(st.sampled_from([each for each in PRODUCERS if self._is_open(each)]))
        producer, log = self.producers[number], self.leader.log
        if RAISES_EPOCHS[number]:
            producer.epoch, producer.sequence = producer.epoch + 1, 0
        at = log.end_offset
        version = 2 if RAISES_EPOCHS[number] else 0
        end(log, number, commit=commit, epoch=producer.epoch, version=version)
        self.entries.append(Entry(at, number, (), commit))
        if replicated:
            self.replicate()

    @rule()
    def roll(self) -> None:
        self.leader.log.roll(NOW)

    # --- replicas ---

    @rule()
    def replicate(self) -> None:
        for _ in range(20):
            before = (self.follower.log.end_offset, self.follower.high_watermark)
            self.replicate_once()
            if before == (self.follower.log.end_offset, self.follower.high_watermark):
                break

    @rule()
    def replicate_once(self) -> None:
        leader, follower, number = self.leader, self.follower, 3 - self.leader_id
        sent = follower.fetch_position()
        assert sent is not None
        diverging = None
        if sent.last_fetched_epoch >= 0:
            diverging = leader.diverging(sent.last_fetched_epoch, sent.fetch_offset)
        if diverging is None:
            leader.on_replica_fetch(number, BROKER_EPOCH, sent.fetch_offset, 0.0)
            found = answer(leader, sent.fetch_offset)
        else:
            found = answer(diverging=diverging)
        outcome, own = fetched(follower, sent, found), self.lists[number]
        if outcome == FetchOutcome.TRUNCATING:
            self.settled[number] = self._snapshot(follower.log)
            own[:] = [entry for entry in own if entry.next_offset <= follower.log.end_offset]
        elif outcome == FetchOutcome.APPENDED:
            ends = follower.log.end_offset
            own += [entry for entry in self.entries if sent.fetch_offset <= entry.offset < ends]

    @rule()
    def fail_over(self) -> None:
        self._elect(3 - self.leader_id)

    @rule(number=st.sampled_from((1, 2)), how=st.sampled_from(("stop", "kill")))
    def restart(self, number: int, how: str) -> None:
        partition = self.replicas[number]
        if how == "stop":
            partition.log.close()
        else:
            self.disks[number].kill()
        self.replicas[number] = self._open(
            number,
            partition.high_watermark,
            partition.log.log_start_offset,
            stopped_at=partition.log.end_offset if how == "stop" else None,
        )
        # After a kill everything is walked, here from the beginning, and nothing taken from a snapshot.
        self.settled[number] = self._snapshot(self.replicas[number].log) if how == "stop" else 0
        self._elect(self.leader_id)

    def _snapshot(self, log: PartitionLog) -> int:
        return max((at for at in log.folder.snapshot_offsets if at <= log.end_offset), default=0)

    @precondition(lambda self: self.leader.high_watermark > self.leader.log.log_start_offset)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        leader = self.leader
        leader.delete_records_before(
            data.draw(st.integers(leader.log.log_start_offset, leader.high_watermark))
        )

    # --- what must be true ---

    def _decided_until(self, number: int) -> int:
        """The last stable offset, by the list."""
        partition = self.replicas[number]
        mark = partition.high_watermark
        open_from: dict[int, int] = {}
        unstable = []
        for entry in self.lists[number]:
            if entry.commit is None and entry.producer >= 0:
                open_from.setdefault(entry.producer, entry.offset)
            elif entry.commit is not None:
                # A replica that began behind the first record of a transaction knows its marker only.
                begun = open_from.pop(entry.producer, None)
                if begun is not None and entry.offset >= max(mark, self.settled[number]):
                    unstable.append(begun)
        first = min([*open_from.values(), *unstable, mark])
        return min(max(first, partition.log.log_start_offset), mark)

    @invariant()
    def the_last_stable_offset_is_right(self) -> None:
        for number, partition in self.replicas.items():
            assert partition.last_stable_offset == self._decided_until(number)

    @invariant()
    def committed_records_are_what_is_read(self) -> None:
        for number, partition in self.replicas.items():
            limits = (partition.log.log_start_offset, partition.last_stable_offset)
            expected = list(self._committed(self.lists[number], *limits))
            for size in (150, 1 << 20):
                assert _read_committed(partition, size) == expected

    def _committed(self, entries: list[Entry], start: int, limit: int) -> Iterator[tuple[int, bytes]]:
        ends: dict[int, list[bool]] = {number: [] for number in PRODUCERS}
        for entry in entries:
            if entry.commit is not None:
                ends[entry.producer].append(entry.commit)
        turns = dict.fromkeys(PRODUCERS, 0)
        for entry in entries:
            if entry.commit is not None:
                turns[entry.producer] += 1
            elif entry.producer < 0 or ends[entry.producer][turns[entry.producer] :][:1] == [True]:
                for offset, value in enumerate(entry.values, entry.offset):
                    if start <= offset < limit:
                        yield offset, value

    @invariant()
    def producers_are_a_function_of_the_log(self) -> None:
        for partition in self.replicas.values():
            log = partition.log
            if log.log_start_offset:
                continue
            states, at = ProducerStates(), 0
            while at < log.end_offset:
                data = read_bytes(log, at)
                place = 0
                for header, _ in whole_batches(data):
                    batch = data[place : place + header.size]
                    apply_batch(states, header, lambda found=batch: found)  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
                    place += header.size
                    at = header.next_offset
            known = {each.producer_id: each.as_snapshot() for each in log.active_producers()}
            assert known == {each.producer_id: each.as_snapshot() for each in states}


def _read_committed(partition: Partition, size: int) -> list[tuple[int, bytes]]:
    """As clients do it: the records of an aborted transaction are passed over until its marker comes."""
    found: list[tuple[int, bytes]] = []
    at = start = partition.log.log_start_offset
    while True:
        answer = partition.read(at, size, read_committed=True)
        if not answer.length:
            return found
        named = sorted(partition.aborted_in(at, answer), key=lambda each: each[1])
        aborted: set[int] = set()
        for header, records in whole_batches(answer.file.pread(answer.length, answer.position)):
            while named and named[0][1] <= header.last_offset:
                aborted.add(named.pop(0)[0])
            if header.is_control:
                if control_type(records[0]) == ControlType.ABORT:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                found += [(each.offset, bytes(each.value or b"")) for each in records if each.offset >= start]
            at = header.next_offset


TransactionsModel.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestTransactionsModel = TransactionsModel.TestCase
