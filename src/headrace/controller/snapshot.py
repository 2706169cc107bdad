"""The image said again in records: the shortest log that replays to it.

Two images are equal if and only if these records are.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.controller.image import METADATA_VERSION, BrokerRegistration, MetadataImage
from headrace.controller.security_records import security_records
from headrace.controller.topic_image import TopicImage
from headrace.protocol.message import Message
from headrace.protocol.stored.config_record import ConfigRecord
from headrace.protocol.stored.feature_level_record import FeatureLevelRecord
from headrace.protocol.stored.partition_record import PartitionRecord
from headrace.protocol.stored.producer_ids_record import ProducerIdsRecord
from headrace.protocol.stored.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from headrace.protocol.stored.topic_record import TopicRecord


def records_of(image: MetadataImage) -> Iterator[Message]:
    """The level that is needed to read the rest comes first; everything else is in a fixed order."""
    for feature in sorted(image.features, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=feature, feature_level=image.features[feature])
    for broker_id in sorted(image.brokers):
        yield _registration(image.brokers[broker_id])
    for name in image.topic_names():
        topic = image.topics_by_name[name]
        yield TopicRecord(name=name, topic_id=topic.topic_id)
        for partition in range(len(topic)):
            yield _partition(topic, partition)
    for resource in sorted(image.configured_resources()):
        for name, value in sorted(image.configs(resource).items()):
            yield ConfigRecord(
                resource_type=resource.type, resource_name=resource.name, name=name, value=value
            )
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from security_records(image)


def _registration(broker: BrokerRegistration) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(
                name=end.listener, host=end.host, port=end.port, security_protocol=end.security_protocol
            )
            for end in broker.endpoints
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(broker.features.items())
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.stopping,
        log_dirs=list(broker.directories),
    )


def _partition(topic: TopicImage, partition: int) -> PartitionRecord:
    state = topic.state(partition)
    rare = state.exceptional
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic.topic_id,
        replicas=list(state.replicas),
        isr=list(state.isr),
        removing_replicas=list(rare.removing),
        adding_replicas=list(rare.adding),
        leader=state.leader,
        leader_recovery_state=int(rare.recovering),
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=list(state.directories),
        eligible_leader_replicas=list(rare.elr) or None,
        last_known_elr=list(rare.last_known_elr) or None,
    )
