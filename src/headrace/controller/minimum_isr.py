"""What a new `min.insync.replicas` means for eligible leaders.

They are eligible because the high watermark stood still while the ISR was below its minimum. A lower minimum
lets it move on, so whoever is outside an ISR that has its minimum now is no longer eligible. The records that
say so are in the group that changes the value: nobody sees the one without the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.controller.image import ConfigResource, ResourceType
from headrace.controller.operations import RecordGroup
from headrace.controller.partition_changes import PartitionChanges
from headrace.controller.policy import MIN_INSYNC_REPLICAS, ReplicationPolicy
from headrace.controller.topic_image import TopicImage
from headrace.protocol.message import Message
from headrace.protocol.stored.config_record import ConfigRecord


def with_eligibility(policy: ReplicationPolicy, groups: list[RecordGroup]) -> list[RecordGroup]:
    """The groups of a change of configs, each with what it costs eligible leaders."""
    return [[*group, *_costs(policy, group)] for group in groups]


def _costs(policy: ReplicationPolicy, group: RecordGroup) -> Iterator[Message]:
    for record in group:
        if isinstance(record, ConfigRecord) and record.name == MIN_INSYNC_REPLICAS:
            resource = ConfigResource(record.resource_type, record.resource_name)
            for topic in _topics(policy, resource):
                minimum = policy.min_insync_replicas(topic.name, changed=(resource, record.value))
                changes = PartitionChanges(policy, topic, min_isr=minimum)
                for partition in topic.exceptional_partitions():
                    change = changes.change(partition) if topic.exceptional(partition).elr else None
                    if change is not None:
                        yield change


def _topics(policy: ReplicationPolicy, resource: ConfigResource) -> list[TopicImage]:
    if resource.type == ResourceType.TOPIC:
        topic = policy.image.topic(resource.name)
        return [] if topic is None else [topic]
    return list(policy.image.topics_by_name.values())
