"""The topics that coordinators keep their state in: made when somebody first asks for a coordinator."""

from __future__ import annotations

import asyncio
from typing import Final

from headrace.broker.cluster.channel import ControllerChannel
from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.config.topic_properties import LEAST_SEGMENT_BYTES
from headrace.core.errors import HeadraceError
from headrace.core.tasks import spawn
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse

GROUPS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
CREATE_MS: Final = 10_000


class InternalTopics:
    """Asks the controller for a topic once at a time, however many clients ask for coordinators."""

    def __init__(self, runtime: Runtime, metadata: MetadataCache, channel: ControllerChannel) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._channel = channel
        self._creating: dict[str, asyncio.Task[None]] = {}
        self._awaited: dict[str, int] = {}
        """How many more brokers each topic waits for: said when it changes."""

    async def ensure(self, name: str) -> None:
        """Have the topic created if it does not exist. Whether that succeeded the image says."""
        if self._metadata.image.topic(name) is not None or self._waits_for_brokers(name):
            return
        task = self._creating.get(name)
        if task is None:
            task = self._creating[name] = spawn(
                f"the creation of {name}", self._create(name), self._runtime.loop
            )
            task.add_done_callback(lambda _: self._creating.pop(name, None))
        await asyncio.shield(task)

    def _waits_for_brokers(self, name: str) -> bool:
        """What is created with too few replicas keeps them for good, and the first group or transaction often
        comes while not all brokers are up."""
        alive, wanted = _alive(self._metadata), replicas_of(self._runtime, self._metadata, name)
        if alive >= wanted:
            self._awaited.pop(name, None)
            return False
        if self._awaited.get(name) != wanted - alive:
            self._awaited[name] = wanted - alive
            self._runtime.log.warning(
                "internal topic not created: too few brokers are alive; start the others,"
                " or `headrace cluster unregister` those that are gone for good",
                topic=name,
                replicas=wanted,
                alive=alive,
            )
        return True

    async def _create(self, name: str) -> None:
        request = CreateTopicsRequest(
            topics=[creatable(self._runtime, self._metadata, name)], timeout_ms=CREATE_MS
        )
        try:
            answer = await self._channel.request(request, CreateTopicsResponse)
        except HeadraceError as error:
            self._runtime.log.warning("internal topic not created", topic=name, error=str(error))
            return
        for topic in answer.topics:
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                reason = ErrorCode(topic.error_code).name
                self._runtime.log.warning(
                    "internal topic not created", topic=name, reason=reason, error=topic.error_message
                )

    def stop(self) -> None:
        for task in list(self._creating.values()):
            task.cancel()


def _alive(metadata: MetadataCache) -> int:
    return sum(not registration.fenced for registration in metadata.image.brokers.values())


def replicas_of(runtime: Runtime, metadata: MetadataCache, name: str) -> int:
    """As many as configured. A cluster that has fewer brokers, alive or not, is no reason to refuse: whoever
    tries one broker has one."""
    config = runtime.config
    if name == GROUPS_TOPIC:
        configured = config.offsets_topic_replication_factor
    else:
        configured = config.transaction_state_log_replication_factor
    return min(configured, max(len(metadata.image.brokers), 1))


def _segment_bytes(configured: int) -> str:
    """Kafka's own least of the two properties is 1, and that of a topic more: the topic must come to be."""
    return str(max(configured, LEAST_SEGMENT_BYTES))


def creatable(runtime: Runtime, metadata: MetadataCache, name: str) -> CreatableTopic:
    """As Kafka makes it. min.insync.replicas is never more than there are replicas, so it needs no rule for
    small clusters."""
    config = runtime.config
    if name == GROUPS_TOPIC:
        partitions = config.offsets_topic_num_partitions
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": _segment_bytes(config.offsets_topic_segment_bytes),
        }
    else:
        partitions = config.transaction_state_log_num_partitions
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": _segment_bytes(config.transaction_state_log_segment_bytes),
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "unclean.leader.election.enable": "false",
        }
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas_of(runtime, metadata, name),
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
