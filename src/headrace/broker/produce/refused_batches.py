"""Keeps the order of a producer's batches where the first of several was refused.

A producer sends some batches without waiting. The first may be refused, because this broker is not the
leader yet or lacks replicas, and the second come when that is over. That would be a gap, and
OUT_OF_ORDER_SEQUENCE_NUMBER, as if something had been lost: librdkafka then takes a new epoch, with which it
may write a second time what it has sent to other partitions and was not answered. And of a producer that is
not known here yet the second would be written before the first. So what follows a refused batch is refused
with the same error until that has come again. A client sends it all again in order, as after any such error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.core.errors import (
    DiskFull,
    HeadraceError,
    NotEnoughReplicas,
    NotLeader,
    TooManyOpenFiles,
    UnknownTopicOrPartition,
)
from headrace.core.ids import TopicPartition
from headrace.protocol.batch import HEADER_SIZE, BatchHeader, read_header

if TYPE_CHECKING:
    from headrace.replication.partition import Partition

PASSING: Final = (NotLeader, NotEnoughReplicas, UnknownTopicOrPartition, DiskFull, TooManyOpenFiles)
"""May be over when the next batch of the same producer is looked at."""
REMEMBERED: Final = 1000
REMEMBERED_MS: Final = 5000
"""What is sent together comes together; a client that gave a batch up must not wait for it for ever."""
_SEQUENCES: Final = 0x7FFFFFFF
_HALF: Final = 0x40000000


class Refused(NamedTuple):
    epoch: int
    sequence: int
    until_ms: int
    kind: type[HeadraceError]
    text: str
    """Not the error itself: it would keep the frames that it was raised in, and the request with them."""


class RefusedBatches:
    def __init__(self) -> None:
        self._by_producer: dict[tuple[TopicPartition, int], Refused] = {}
        """The first of those that were refused together."""

    def __len__(self) -> int:
        return len(self._by_producer)

    def note(self, where: TopicPartition, records: memoryview, error: HeadraceError, now_ms: int) -> None:
        """A client's batch was refused, and may come again."""
        if not isinstance(error, PASSING) or len(records) < HEADER_SIZE:
            return
        header = read_header(records)
        if header.producer_id < 0 or header.base_sequence < 0:
            return
        key = where, header.producer_id
        known = self._by_producer.get(key)
        if (
            known is not None
            and known.epoch == header.producer_epoch
            and now_ms < known.until_ms
            and _is_behind(header.base_sequence, known.sequence)
        ):
            return  # its own retries must not prolong the wait for one that may never come
        self._by_producer.pop(key, None)
        self._by_producer[key] = Refused(
            header.producer_epoch, header.base_sequence, now_ms + REMEMBERED_MS, type(error), str(error)
        )
        if len(self._by_producer) > REMEMBERED:
            del self._by_producer[next(iter(self._by_producer))]

    def check(self, partition: Partition, header: BatchHeader, now_ms: int) -> None:
        """Raises the error of the batch that must come before this one. To be called if there are any."""
        self._forget_old(now_ms)
        key = partition.topic_partition, header.producer_id
        refused = self._by_producer.get(key)
        if refused is None or refused.epoch != header.producer_epoch:
            return
        if header.base_sequence == refused.sequence:
            del self._by_producer[key]
        elif _is_behind(header.base_sequence, refused.sequence) and self._lacks(partition, header, refused):
            raise refused.kind(refused.text)

    def _forget_old(self, now_ms: int) -> None:
        """They are in the order of their time. Without them a produce need not look here at all."""
        while self._by_producer:
            key = next(iter(self._by_producer))
            if now_ms < self._by_producer[key].until_ms:
                return
            del self._by_producer[key]

    def _lacks(self, partition: Partition, header: BatchHeader, refused: Refused) -> bool:
        """It may have gone to another leader meanwhile, and have come here as a replica's."""
        entry = partition.log.producers.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            return True
        return (entry.last_sequence + 1) & _SEQUENCES == refused.sequence


def _is_behind(sequence: int, other: int) -> bool:
    """Sequences begin anew after the largest."""
    return 0 < (sequence - other) & _SEQUENCES < _HALF
