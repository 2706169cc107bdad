"""What a group has committed, as another client than the pipeline's finds it."""

from __future__ import annotations

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec


def committed(bootstrap: str, group: str, topic: str, partition: int = 0) -> int:
    """Negative if nothing is."""
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition)])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.list_consumer_group_offsets([asked])[group].result(60)
    (entry,) = found.topic_partitions
    return int(entry.offset)


def end_of(bootstrap: str, topic: str, partition: int) -> int:
    asked = TopicPartition(topic, partition)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # confluent-kafka gives it no types
    return int(admin.list_offsets({asked: latest})[asked].result(60).offset)
