"""Makes the hosted partitions follow the metadata: opened when they appear, removed when they vanish."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from headrace.broker.configs import topic_config
from headrace.broker.storage import METADATA_PARTITION
from headrace.config.topic import TopicConfig
from headrace.controller.delta import MetadataDelta
from headrace.controller.image import ResourceType
from headrace.controller.topic_image import TopicImage
from headrace.core.errors import StorageError
from headrace.core.ids import NO_TOPIC_ID, TopicPartition
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition import Partition

if TYPE_CHECKING:
    from headrace.broker.broker import Broker


class Hosting:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def start(self) -> None:
        """Host everything that the metadata assigns to this broker, then follow its changes."""
        self._set_strays_aside()
        for topic in list(self._broker.image.topics_by_name.values()):
            self._host(topic, list(topic.partitions_with_replica(self._broker.broker_id)))
        self._broker.controller.subscribe(self._on_delta)

    def _set_strays_aside(self) -> None:
        """Logs of topics that no longer exist, as a crash in the middle of a deletion leaves them.

        Disagreeing metadata never deletes data by itself: the files stay, under another name.
        """
        broker = self._broker
        for name, log in list(broker.logs.logs.items()):
            topic = broker.image.topic(name.topic)
            known = topic is not None and log.topic_id in (topic.topic_id, NO_TOPIC_ID)
            if known or name == METADATA_PARTITION or not log.directory.is_online:
                continue
            for path in broker.logs.set_aside((name,)):
                broker.log.warning("partition of no known topic set aside", partition=str(name), path=path)

    def _on_delta(self, delta: MetadataDelta) -> None:
        broker = self._broker
        for removed in delta.removed_topics:
            self._remove(removed.name, removed.topic_id)
        for topic_id, partitions in delta.partitions.items():
            topic = broker.image.topic_by_id(topic_id)
            if topic is not None:
                self._host(topic, [i for i in partitions if broker.broker_id in topic.replicas(i)])
        if any(resource.type == ResourceType.BROKER for resource in delta.configs):
            broker.config = broker.static_config.with_dynamic(
                broker.image.broker_configs(None), broker.image.broker_configs(broker.broker_id)
            )
            broker.network.max_connections = broker.connection_limit
            broker.network.max_connections_per_ip = broker.config.max_connections_per_ip
            self._reconfigure(None)
        for resource in delta.configs:
            if resource.type == ResourceType.TOPIC:
                self._reconfigure(resource.name)

    def _host(self, topic: TopicImage, indexes: list[int]) -> None:
        broker = self._broker
        config = None
        for index in indexes:
            partition = broker.partitions.find(topic.name, index)
            if partition is None:
                if config is None:
                    config = topic_config(broker, topic.name)
                name = TopicPartition(topic.name, index)
                try:
                    log = self._open(name, topic.topic_id, config)
                except StorageError as error:
                    broker.log.error("partition offline", partition=str(name), error=str(error))
                    broker.partitions.set_offline(name, error)
                    continue
                partition = Partition(name, topic.topic_id, log, broker.metrics.topic(topic.name))
                broker.partitions.add(partition)
            if topic.leaders[index] == broker.broker_id:
                partition.lead(topic.leader_epochs[index], topic.isr(index), broker.broker_id)
            else:
                partition.resign()

    def _open(self, name: TopicPartition, topic_id: UUID, config: TopicConfig) -> PartitionLog:
        logs = self._broker.logs
        if name in logs.logs or name in logs.quarantined:
            log = logs.get(name)
            if log.topic_id not in (topic_id, NO_TOPIC_ID):
                raise StorageError(
                    f"{log.path} holds another topic of the same name (id {log.topic_id}, not {topic_id}):"
                    " move it away, then restart the broker"
                )
        else:
            log = logs.create(name, topic_id, self._broker.clock.wall_ms())
        log.update_config(config)
        return log

    def _remove(self, name: str, topic_id: UUID) -> None:
        broker = self._broker
        partitions = broker.partitions.remove_topic(name)
        for partition in partitions:
            partition.resign()
        gone = [partition.topic_partition for partition in partitions if partition.topic_id == topic_id]
        broker.logs.delete(gone, broker.clock.wall_ms())
        broker.metrics.forget_topic(name)

    def _reconfigure(self, topic: str | None) -> None:
        """Give the logs of a topic, or of all of them, the configuration that holds now."""
        broker = self._broker
        names = [topic] if topic is not None else list(broker.image.topics_by_name)
        for name in names:
            config = topic_config(broker, name)
            for partition in broker.partitions.of_topic(name):
                partition.log.update_config(config)

    def close(self) -> None:
        """Runs in a thread once nothing else touches the logs any more."""
        broker = self._broker
        broker.logs.shut_down(broker.controller.broker_epoch, high_watermarks(broker))


def high_watermarks(broker: Broker) -> dict[TopicPartition, int]:
    """For the replication-offset checkpoint."""
    return {partition.topic_partition: partition.high_watermark for partition in broker.partitions}
