"""The topics that coordinators keep their state in: made when somebody first asks for a coordinator."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from headrace.core.errors import HeadraceError
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse

if TYPE_CHECKING:
    from headrace.broker.broker import Broker

GROUPS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
CREATE_MS: Final = 10_000


class InternalTopics:
    """Asks the controller for a topic once at a time, however many clients ask for coordinators."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._creating: dict[str, asyncio.Task[None]] = {}

    async def ensure(self, name: str) -> None:
        """Have the topic created if it does not exist. Whether that succeeded the image says."""
        if self._broker.image.topic(name) is not None:
            return
        task = self._creating.get(name)
        if task is None:
            task = self._creating[name] = self._broker.loop.create_task(self._create(name))
            task.add_done_callback(lambda _: self._creating.pop(name, None))
        await asyncio.shield(task)

    async def _create(self, name: str) -> None:
        broker = self._broker
        request = CreateTopicsRequest(topics=[creatable(broker, name)], timeout_ms=CREATE_MS)
        try:
            answer = await broker.channel.request(request, CreateTopicsResponse)
        except HeadraceError as error:
            broker.log.warning("internal topic not created", topic=name, error=str(error))
            return
        for topic in answer.topics:
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                reason = ErrorCode(topic.error_code).name
                broker.log.warning(
                    "internal topic not created", topic=name, reason=reason, error=topic.error_message
                )

    def stop(self) -> None:
        for task in list(self._creating.values()):
            task.cancel()


def creatable(broker: Broker, name: str) -> CreatableTopic:
    """As Kafka makes it, except that fewer brokers than replicas are no reason to refuse: whoever tries one
    broker has one. min.insync.replicas is never more than there are replicas, so it needs no such rule."""
    config = broker.config
    if name == GROUPS_TOPIC:
        partitions, replicas = config.offsets_topic_num_partitions, config.offsets_topic_replication_factor
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        }
    else:
        partitions = config.transaction_state_log_num_partitions
        replicas = config.transaction_state_log_replication_factor
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "unclean.leader.election.enable": "false",
        }
    alive = sum(not registration.fenced for registration in broker.image.brokers.values())
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=min(replicas, max(alive, 1)),
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
