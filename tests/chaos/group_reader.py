"""A consumer of librdkafka that knows what was given to it and taken from it, record by record.

It reads by assignment (with a group of its own, which only stores offsets) or by subscription (with a group
that is shared). After a transaction that was not committed it goes back to the offsets of its group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tests.chaos.workload import QUICK, decode
from tests.checker.history import Poll, Value

POLL_RECORDS: Final = 50
#: How a group shares its partitions. A run has one of them: members of one group must agree.
PROTOCOLS: Final[Mapping[str, Mapping[str, str | int]]] = {
    "range": {"partition.assignment.strategy": "range", "session.timeout.ms": 3000},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky", "session.timeout.ms": 3000},
    "consumer": {"group.protocol": "consumer"},
}
_LOST_ITS_PLACE: Final = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
_ASK_SECONDS: Final = 10.0


class GroupReader:
    def __init__(
        self, bootstrap: str, group: str, topic: str, complain: Callable[[str], None], protocol: str
    ) -> None:
        """`protocol` is empty for a reader by assignment."""
        self.topic = topic
        self.subscribed = bool(protocol)
        self._complain = complain
        self._moved: dict[int, None] = {}
        self._revoked: dict[int, None] = {}
        self._positions: dict[int, int] = {}
        self.failed = False
        """It was told an error for good: it must be replaced."""
        self.consumer = Consumer(
            {
                **QUICK,
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest" if protocol else "error",
                "isolation.level": "read_committed",
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 50,
                "error_cb": self._told_error,
                **PROTOCOLS.get(protocol, {}),
            }
        )

    def subscribe(self) -> None:
        self.consumer.subscribe(
            [self.topic], on_assign=self._given, on_revoke=self._taken, on_lost=self._taken
        )

    def assign(self, partitions: int) -> dict[int, int]:
        """Every partition, from where the group's offsets say. Returns where that is."""
        wanted = [TopicPartition(self.topic, partition) for partition in range(partitions)]
        places = {one.partition: max(0, one.offset) for one in self._committed(wanted)}
        self.consumer.assign([TopicPartition(self.topic, *place) for place in places.items()])
        return places

    def rewind(self) -> None:
        """Under subscription: again from the offsets of the group."""
        for one in self._committed(self.consumer.assignment()):
            self.consumer.seek(TopicPartition(one.topic, one.partition, max(0, one.offset)))

    def _committed(self, wanted: list[TopicPartition]) -> list[TopicPartition]:
        if not wanted:
            return []
        found = self.consumer.committed(wanted, timeout=_ASK_SECONDS)
        for one in found:
            if one.error is not None:
                raise KafkaException(one.error)
        return found

    def begin(self) -> None:
        """A transaction begins: what is read from here on belongs to it."""
        self._positions.clear()
        self._revoked.clear()

    def offsets(self) -> list[TopicPartition]:
        """What the transaction has read up to."""
        return [TopicPartition(self.topic, *place) for place in self._positions.items()]

    @property
    def lost_what_it_read(self) -> bool:
        """A partition that the transaction has read now belongs to another: its offsets are not ours."""
        return any(partition in self._revoked for partition in self._positions)

    def poll(self, seconds: float) -> list[tuple[Poll, list[Message]]]:
        """What comes, at most `POLL_RECORDS` of it. Each change of the assignment begins another poll."""
        polls: list[tuple[dict[str, list[tuple[int, Value]]], list[str], list[Message]]] = [({}, [], [])]
        for count in range(POLL_RECORDS):
            message = self.consumer.poll(seconds if count == 0 else 0.0)
            if self._moved:
                polls.append(({}, [f"{self.topic}-{partition}" for partition in self._moved], []))
                self._moved.clear()
            if message is None:
                break
            if (error := message.error()) is not None:
                self._told_error(error)
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            found, _, messages = polls[-1]
            found.setdefault(f"{self.topic}-{partition}", []).append((offset, decode(message.value())))
            messages.append(message)
            self._positions[partition] = offset + 1
        return [(Poll(found, tuple(moved)), messages) for found, moved, messages in polls]

    def _given(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._moved |= dict.fromkeys(one.partition for one in partitions)

    def _taken(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = dict.fromkeys(one.partition for one in partitions)
        self._moved |= numbers
        self._revoked |= numbers

    def _told_error(self, error: KafkaError) -> None:
        if error.code() in _LOST_ITS_PLACE:
            self._complain(error.str())
        if error.fatal() or error.code() == KafkaError._FATAL:
            self.failed = True

    def close(self) -> None:
        self.consumer.close()
