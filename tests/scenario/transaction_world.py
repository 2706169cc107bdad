"""What the transaction scenarios happen in: one coordinator, one transactional id, and partitions that judge
batches and markers by the log's own producer state."""

from __future__ import annotations

from typing import NamedTuple

from headrace.core.errors import InvalidTransactionState
from headrace.log.producer_state import ProducerStates
from headrace.log.producer_verification import Verification
from headrace.protocol.batch import BatchHeader, read_header
from headrace.protocol.control_records import end_marker
from headrace.protocol.records import NewRecord, encode_batch
from headrace.transactions.shard import TransactionSettings
from headrace.transactions.transaction import Producer
from tests.unit.transactions.coordinator import MemoryCoordinator

ABORT_CHECK = "abort"


class World:
    def __init__(self) -> None:
        self.coordinator = MemoryCoordinator(settings=TransactionSettings(two_phase_commit=True))
        self._epoch = 1
        self._partitions: dict[str, Partition] = {}

    def partition(self, name: str) -> Partition:
        return self._partitions.setdefault(name, Partition(self.coordinator, name))

    def add(self, producer: Producer, name: str) -> None:
        self.coordinator.add(producer, self.partition(name).place)

    def fail_over(self) -> None:
        self._epoch += 1
        self.coordinator.fail_over()

    def wait(self, seconds: int) -> None:
        self.coordinator.pass_time(seconds * 1000)
        self.coordinator.fire(ABORT_CHECK)

    def write_markers(self, only: list[str]) -> None:
        """Also those that were written once: whoever takes over cannot know."""
        for markers in list(self.coordinator.markers):
            for topic, indexes in markers.partitions.items():
                for index in indexes:
                    name = f"{topic}-{index}"
                    if not only or name in only:
                        self.partition(name).end(
                            markers.producer, markers.commit, self._epoch, markers.client_version
                        )
        if not only:
            self.coordinator.write_markers()


class Entry(NamedTuple):
    producer_id: int
    value: str | None
    """None for a marker."""
    commit: bool = False


class Partition:
    def __init__(self, coordinator: MemoryCoordinator, name: str) -> None:
        self._coordinator = coordinator
        topic, _, index = name.rpartition("-")
        self.place = (topic, int(index))
        self._states = ProducerStates()
        self._log: list[Entry] = []
        self._sequences: dict[Producer, int] = {}
        self._asked: dict[Producer, Verification] = {}

    def ask(self, producer: Producer) -> None:
        """A first batch came, and the coordinator is asked about it."""
        verification = self._states.begin_verification(
            *producer, self._sequences.get(producer, 0), raises_epochs=False, now_ms=0
        )
        if verification is not None:
            self._asked[producer] = verification
            if self._coordinator.missing(producer, self.place):
                raise InvalidTransactionState("the coordinator does not know of it")

    def tell(self, producer: Producer) -> None:
        """The coordinator's answer is there."""
        verification = self._asked.pop(producer, None)
        if verification is not None and not self._states.end_verification(producer.producer_id, verification):
            raise InvalidTransactionState("the transaction has ended meanwhile")

    def send(self, producer: Producer, value: str) -> None:
        if self._states.needs_verification(*producer):
            self.ask(producer)
            self.tell(producer)
        sequence = self._sequences.get(producer, 0)
        header = _header(producer, sequence)
        if self._states.check(header) is None:
            self._states.apply(header, len(self._log))
            self._log.append(Entry(producer.producer_id, value))
        self._sequences[producer] = sequence + 1

    def end(self, producer: Producer, commit: bool, coordinator_epoch: int, client_version: int) -> None:
        self._states.check_marker(*producer, coordinator_epoch, client_version)
        marker = end_marker(commit=commit, coordinator_epoch=coordinator_epoch, timestamp=1)
        batch = encode_batch(
            [marker],
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transactional=True,
            control=True,
        )
        self._states.apply_marker(
            read_header(batch), len(self._log), coordinator_epoch=coordinator_epoch, commit=commit
        )
        self._log.append(Entry(producer.producer_id, None, commit))

    def committed(self) -> tuple[list[str], bool]:
        """The values of committed transactions before the first that is open, and whether one is."""
        undecided = self._states.first_undecided_offset
        end = len(self._log) if undecided is None else undecided
        values = []
        for offset, entry in enumerate(self._log[:end]):
            if entry.value is not None and self._result(offset, entry.producer_id):
                values.append(entry.value)
        return values, undecided is not None

    def _result(self, offset: int, producer_id: int) -> bool:
        return next(
            entry.commit
            for entry in self._log[offset:]
            if entry.producer_id == producer_id and entry.value is None
        )


def _header(producer: Producer, sequence: int) -> BatchHeader:
    batch = encode_batch(
        [NewRecord(b"v", timestamp=1)],
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=True,
    )
    return read_header(batch)
