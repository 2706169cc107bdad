"""One topic's partitions as columns: a few machine integers per partition, no object per partition.

A cluster may hold a million partitions in every broker, so a partition may cost less than 300 bytes.
Replicas, ISR and directories are flat arrays with one stride per topic (the largest replica list),
padded with -1. What few partitions have (a reassignment, eligible leaders, a recovery) is in a dict.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from headrace.core.errors import CorruptLog
from headrace.core.ids import NO_BROKER

UNASSIGNED_DIRECTORY = UUID(int=0)
"""Kafka's id for "the broker has not chosen a log directory yet"."""

KEEP_LEADER = -2
"""In a change of a partition: nothing is said of its leader."""


class DirectoryTable:
    """Log directory ids, each held once for the whole cluster; columns hold its number."""

    __slots__ = ("_ids", "_numbers")

    def __init__(self) -> None:
        self._ids: list[UUID] = [UNASSIGNED_DIRECTORY]
        self._numbers: dict[UUID, int] = {UNASSIGNED_DIRECTORY: 0}

    def number(self, directory: UUID) -> int:
        number = self._numbers.get(directory)
        if number is None:
            number = self._numbers[directory] = len(self._ids)
            self._ids.append(directory)
        return number

    def directory(self, number: int) -> UUID:
        return self._ids[number]

    def known(self, directory: UUID) -> int | None:
        """Its number; None if no partition was ever said to be in it."""
        return self._numbers.get(directory)


class Exceptional(NamedTuple):
    """What most partitions never have."""

    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    recovering: bool = False


ORDINARY = Exceptional()


class PartitionState(NamedTuple):
    """A copy of one partition's row, for those who want it whole."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[UUID, ...]
    exceptional: Exceptional = ORDINARY


class TopicImage:
    __slots__ = (
        "_directories",
        "_exceptional",
        "_isr",
        "_replicas",
        "_stride",
        "_table",
        "leader_epochs",
        "leaders",
        "name",
        "partition_epochs",
        "topic_id",
    )

    def __init__(self, name: str, topic_id: UUID, table: DirectoryTable) -> None:
        self.name = name
        self.topic_id = topic_id
        self.leaders = array("i")
        self.leader_epochs = array("i")
        self.partition_epochs = array("i")
        # The three below have `_stride` numbers per partition; -1 after the last one.
        self._stride = 0
        self._replicas = array("i")
        self._isr = array("i")
        self._directories = array("i")
        self._exceptional: dict[int, Exceptional] = {}
        self._table = table

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {self.topic_id}, {len(self)} partitions)"

    def __len__(self) -> int:
        """How many partitions there are; they are numbered from 0 without a gap."""
        return len(self.leaders)

    def __contains__(self, partition: object) -> bool:
        return isinstance(partition, int) and 0 <= partition < len(self.leaders)

    def leader(self, partition: int) -> int:
        return self.leaders[partition]

    def leader_epoch(self, partition: int) -> int:
        return self.leader_epochs[partition]

    def partition_epoch(self, partition: int) -> int:
        return self.partition_epochs[partition]

    def replicas(self, partition: int) -> tuple[int, ...]:
        return _row(self._replicas, partition, self._stride)

    def isr(self, partition: int) -> tuple[int, ...]:
        return _row(self._isr, partition, self._stride)

    def directories(self, partition: int) -> tuple[UUID, ...]:
        numbers = _row(self._directories, partition, self._stride)
        return tuple(self._table.directory(number) for number in numbers)

    def directory_of(self, partition: int, broker_id: int) -> UUID:
        """Where this broker keeps its replica; unassigned if it has none."""
        replicas = self.replicas(partition)
        if broker_id not in replicas:
            return UNASSIGNED_DIRECTORY
        return self._table.directory(self._directories[partition * self._stride + replicas.index(broker_id)])

    def exceptional(self, partition: int) -> Exceptional:
        return self._exceptional.get(partition, ORDINARY)

    def exceptional_partitions(self) -> list[int]:
        """Those that have something that most never have, in order."""
        return sorted(self._exceptional)

    def state(self, partition: int) -> PartitionState:
        if partition not in self:
            raise IndexError(f"{self.name} has no partition {partition}")
        return PartitionState(
            self.leaders[partition],
            self.leader_epochs[partition],
            self.partition_epochs[partition],
            self.replicas(partition),
            self.isr(partition),
            self.directories(partition),
            self.exceptional(partition),
        )

    def partitions_with_replica(self, broker_id: int) -> Iterator[int]:
        return _rows_with(self._replicas, broker_id, self._stride)

    def partitions_with_isr_member(self, broker_id: int) -> Iterator[int]:
        return _rows_with(self._isr, broker_id, self._stride)

    def partitions_led_by(self, broker_id: int) -> Iterator[int]:
        return _rows_with(self.leaders, broker_id, 1)

    def partitions_with_any_isr_member(self, broker_ids: Collection[int]) -> list[int]:
        """For several brokers at once: one pass, however many they are."""
        return _rows_with_any(self._isr, broker_ids, self._stride)

    def partitions_in_directories(self, directories: Collection[UUID]) -> list[int]:
        """Those with a replica in one of these directories, of whichever broker they are."""
        numbers = {number for each in directories if (number := self._table.known(each))}
        return _rows_with_any(self._directories, numbers, self._stride)

    @property
    def is_in_sync(self) -> bool:
        """Every replica of every partition is in its ISR, which never has others: so counting will do."""
        return self._replicas.count(NO_BROKER) == self._isr.count(NO_BROKER)

    def leaderless_partitions(self) -> list[int]:
        return [i for i, leader in enumerate(self.leaders) if leader < 0] if NO_BROKER in self.leaders else []

    def partitions_led_by_another(self) -> list[int]:
        """Those with a leader that is not the first of their replicas, the preferred one."""
        preferred = self._replicas[:: self._stride] if self._stride else self._replicas
        if preferred == self.leaders:
            return []
        pairs = zip(preferred, self.leaders, strict=True)
        return [i for i, (first, leader) in enumerate(pairs) if leader >= 0 and first != leader]

    # --- changes: only replay calls these ----------------------------------------------------------------

    def add(self, partition: int, state: PartitionState) -> None:
        if partition != len(self):
            raise CorruptLog(f"partition {partition} of {self.name} follows partition {len(self) - 1}")
        self._widen(max(len(state.replicas), len(state.isr)))
        self.leaders.append(state.leader)
        self.leader_epochs.append(state.leader_epoch)
        self.partition_epochs.append(state.partition_epoch)
        _append_row(self._replicas, self._stride, state.replicas)
        _append_row(self._isr, self._stride, state.isr)
        _append_row(self._directories, self._stride, self._numbers(state.directories))
        if state.exceptional != ORDINARY:
            self._exceptional[partition] = state.exceptional

    def put(self, partition: int, state: PartitionState) -> None:
        self._widen(max(len(state.replicas), len(state.isr)))
        self.leaders[partition] = state.leader
        self.leader_epochs[partition] = state.leader_epoch
        self.partition_epochs[partition] = state.partition_epoch
        self._write(partition, state)

    def raise_epochs(self, partition: int, leader: int) -> None:
        """A new leader and nothing else: what most changes are, so they cost no copy of the row."""
        self.leaders[partition] = leader
        self.leader_epochs[partition] += 1
        self.partition_epochs[partition] += 1

    def put_isr(self, partition: int, leader: int, isr: Sequence[int], exceptional: Exceptional) -> None:
        """What a failure changes: no replica moves. The leader epoch is raised by `leader` not being -2."""
        if leader != KEEP_LEADER:
            self.leaders[partition] = leader
            self.leader_epochs[partition] += 1
        self.partition_epochs[partition] += 1
        _set_row(self._isr, partition, self._stride, isr)
        self._set_exceptional(partition, exceptional)

    def _numbers(self, directories: Sequence[UUID]) -> list[int]:
        number = self._table.number
        return [number(directory) for directory in directories]

    def _write(self, partition: int, state: PartitionState) -> None:
        _set_row(self._replicas, partition, self._stride, state.replicas)
        _set_row(self._isr, partition, self._stride, state.isr)
        _set_row(self._directories, partition, self._stride, self._numbers(state.directories))
        self._set_exceptional(partition, state.exceptional)

    def _set_exceptional(self, partition: int, exceptional: Exceptional) -> None:
        if exceptional == ORDINARY:
            self._exceptional.pop(partition, None)
        else:
            self._exceptional[partition] = exceptional

    def _widen(self, stride: int) -> None:
        """Make room for longer replica lists: rare, and the whole topic is laid out again."""
        if stride <= self._stride:
            return
        for column in (self._replicas, self._isr, self._directories):
            rows = [_row(column, partition, self._stride) for partition in range(len(self))]
            del column[:]
            for row in rows:
                _append_row(column, stride, row)
        self._stride = stride


def _row(column: array[int], partition: int, stride: int) -> tuple[int, ...]:
    row = tuple(column[partition * stride : (partition + 1) * stride])
    if row and row[-1] == NO_BROKER:
        return row[: row.index(NO_BROKER)]
    return row


def _append_row(column: array[int], stride: int, values: Sequence[int]) -> None:
    column.extend(values)
    if len(values) < stride:
        column.extend([-1] * (stride - len(values)))


def _set_row(column: array[int], partition: int, stride: int, values: Sequence[int]) -> None:
    at = partition * stride
    for i in range(stride):
        column[at + i] = values[i] if i < len(values) else -1


def _rows_with(column: array[int], value: int, stride: int) -> Iterator[int]:
    """Rows that hold `value`, in order. The bytes are searched: that is several times as fast as numbers."""
    if value < 0 or not stride:
        return
    row_bytes = stride * column.itemsize
    wanted, column_bytes = array("i", [value]).tobytes(), column.tobytes()
    at = column_bytes.find(wanted)
    while at >= 0:
        if at % column.itemsize:
            # The end of one number and the beginning of the next.
            at = column_bytes.find(wanted, at + 1)
            continue
        row = at // row_bytes
        yield row
        at = column_bytes.find(wanted, (row + 1) * row_bytes)


def _rows_with_any(column: array[int], values: Collection[int], stride: int) -> list[int]:
    """Rows that hold one of `values`, in order."""
    if not values:
        return []
    if len(values) == 1:
        (only,) = values
        return list(_rows_with(column, only, stride))
    wanted = frozenset(values)
    return list(dict.fromkeys([i // stride for i, value in enumerate(column) if value in wanted]))
