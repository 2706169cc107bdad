"""Nominal types for the numbers that must never be mixed up."""

from __future__ import annotations

from typing import NamedTuple, NewType
from uuid import UUID

BrokerId = NewType("BrokerId", int)
PartitionIndex = NewType("PartitionIndex", int)
Offset = NewType("Offset", int)
LeaderEpoch = NewType("LeaderEpoch", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
ControllerEpoch = NewType("ControllerEpoch", int)
BrokerEpoch = NewType("BrokerEpoch", int)
TopicId = UUID

NO_TOPIC_ID = UUID(int=0)
NO_PRODUCER_ID = ProducerId(-1)
NO_PRODUCER_EPOCH = ProducerEpoch(-1)
NO_LEADER_EPOCH = LeaderEpoch(-1)
NO_BROKER = BrokerId(-1)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
