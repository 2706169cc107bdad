"""Applying committed records to the image: the only code that changes it.

Replay never refuses on grounds that a decision should have checked; it trusts what is committed. What it
cannot understand or fit raises CorruptLog, and a broker that meets that stops: a guess would make its
image differ from the others'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from headrace.controller.delta import MetadataDelta, RemovedTopic
from headrace.controller.image import BrokerRegistration, ConfigResource, Endpoint, MetadataImage
from headrace.controller.registration_states import FENCED, STOPPING, UNFENCED
from headrace.controller.security_replay import SECURITY_APPLIERS
from headrace.controller.topic_image import (
    KEEP_LEADER,
    UNASSIGNED_DIRECTORY,
    Exceptional,
    PartitionState,
    TopicImage,
)
from headrace.core.errors import CorruptLog
from headrace.core.ids import BrokerEpoch, BrokerId
from headrace.protocol.message import Message
from headrace.protocol.stored.abort_transaction_record import AbortTransactionRecord
from headrace.protocol.stored.begin_transaction_record import BeginTransactionRecord
from headrace.protocol.stored.broker_registration_change_record import BrokerRegistrationChangeRecord
from headrace.protocol.stored.config_record import ConfigRecord
from headrace.protocol.stored.end_transaction_record import EndTransactionRecord
from headrace.protocol.stored.feature_level_record import FeatureLevelRecord
from headrace.protocol.stored.no_op_record import NoOpRecord
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord
from headrace.protocol.stored.partition_record import PartitionRecord
from headrace.protocol.stored.producer_ids_record import ProducerIdsRecord
from headrace.protocol.stored.register_broker_record import RegisterBrokerRecord
from headrace.protocol.stored.remove_topic_record import RemoveTopicRecord
from headrace.protocol.stored.topic_record import TopicRecord
from headrace.protocol.stored.unregister_broker_record import UnregisterBrokerRecord

NO_CHANGE_OF_RECOVERY = -1


class Replayer:
    """Replays record by record; between the marks of a transaction it holds records back until its end.

    A decision larger than one batch is committed as a transaction, so that a crash in its middle leaves
    nothing of it in any image.
    """

    __slots__ = ("_held", "image")

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self._held: list[Message] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._held is not None

    def replay_all(self, records: Iterable[Message], delta: MetadataDelta) -> None:
        for record in records:
            self.replay(record, delta)

    def replay(self, record: Message, delta: MetadataDelta) -> None:
        if isinstance(record, BeginTransactionRecord):
            if self._held is not None:
                raise CorruptLog("a metadata transaction begins inside another one")
            self._held = []
        elif isinstance(record, (EndTransactionRecord, AbortTransactionRecord)):
            if self._held is None:
                raise CorruptLog("a metadata transaction ends that never began")
            held, self._held = self._held, None
            if isinstance(record, EndTransactionRecord):
                for each in held:
                    apply(self.image, each, delta)
        elif self._held is not None:
            self._held.append(record)
        else:
            apply(self.image, record, delta)


def apply(image: MetadataImage, record: Message, delta: MetadataDelta) -> None:
    appliers = _APPLIERS.get(type(record))
    if appliers is None:
        raise CorruptLog(f"this version cannot apply a {type(record).__name__}")
    appliers(image, record, delta)


def _topic(image: MetadataImage, topic_id: UUID) -> TopicImage:
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        raise CorruptLog(f"a metadata record names topic id {topic_id}, which does not exist")
    return topic


def _apply_topic(image: MetadataImage, record: TopicRecord, delta: MetadataDelta) -> None:
    if record.name in image.topics_by_name or record.topic_id in image.topics_by_id:
        raise CorruptLog(f"topic {record.name!r} ({record.topic_id}) is created twice")
    image.add_topic(record.name, record.topic_id)
    delta.created_topics.append(record.topic_id)


def _apply_remove_topic(image: MetadataImage, record: RemoveTopicRecord, delta: MetadataDelta) -> None:
    topic = _topic(image, record.topic_id)
    image.remove_topic(topic)
    delta.forget(RemovedTopic(topic.name, topic.topic_id, len(topic)))


def _apply_partition(image: MetadataImage, record: PartitionRecord, delta: MetadataDelta) -> None:
    topic = _topic(image, record.topic_id)
    state = PartitionState(
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        tuple(record.replicas),
        tuple(record.isr),
        _directories(record.directories, len(record.replicas)),
        Exceptional(
            tuple(record.adding_replicas),
            tuple(record.removing_replicas),
            tuple(record.eligible_leader_replicas or ()),
            tuple(record.last_known_elr or ()),
            record.leader_recovery_state == 1,
        ),
    )
    if record.partition_id in topic:
        topic.put(record.partition_id, state)
    else:
        topic.add(record.partition_id, state)
        image.partition_count += 1
    delta.touch(record.topic_id, record.partition_id)


def _directories(given: list[UUID], replicas: int) -> tuple[UUID, ...]:
    """Records older than directories have none."""
    return tuple(given) if len(given) == replicas else (UNASSIGNED_DIRECTORY,) * replicas


def _apply_partition_change(
    image: MetadataImage, record: PartitionChangeRecord, delta: MetadataDelta
) -> None:
    topic = _topic(image, record.topic_id)
    partition = record.partition_id
    if partition not in topic:
        raise CorruptLog(f"a change of partition {partition} of {topic.name}, which does not exist")
    delta.touch(record.topic_id, partition)
    if _changes_leader_only(record):
        topic.raise_epochs(partition, record.leader)
        return
    if record.replicas is None and record.directories is None:
        isr = topic.isr(partition) if record.isr is None else record.isr
        topic.put_isr(partition, record.leader, isr, _merged(topic.exceptional(partition), record))
        return
    before = topic.state(partition)
    replicas = before.replicas if record.replicas is None else tuple(record.replicas)
    directories = before.directories if record.directories is None else tuple(record.directories)
    new_leader = record.leader != KEEP_LEADER
    topic.put(
        partition,
        PartitionState(
            record.leader if new_leader else before.leader,
            before.leader_epoch + new_leader,
            before.partition_epoch + 1,
            replicas,
            before.isr if record.isr is None else tuple(record.isr),
            _directories(list(directories), len(replicas)),
            _merged(before.exceptional, record),
        ),
    )


def _changes_leader_only(record: PartitionChangeRecord) -> bool:
    return (
        record.leader != KEEP_LEADER
        and record.isr is None
        and record.replicas is None
        and record.directories is None
        and _says_nothing_rare(record)
    )


def _says_nothing_rare(record: PartitionChangeRecord) -> bool:
    return (
        record.adding_replicas is None
        and record.removing_replicas is None
        and record.eligible_leader_replicas is None
        and record.last_known_elr is None
        and record.leader_recovery_state == NO_CHANGE_OF_RECOVERY
    )


def _merged(before: Exceptional, record: PartitionChangeRecord) -> Exceptional:
    if _says_nothing_rare(record):
        return before

    def pick(new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
        return old if new is None else tuple(new)

    recovery = record.leader_recovery_state
    return Exceptional(
        pick(record.adding_replicas, before.adding),
        pick(record.removing_replicas, before.removing),
        pick(record.eligible_leader_replicas, before.elr),
        pick(record.last_known_elr, before.last_known_elr),
        before.recovering if recovery == NO_CHANGE_OF_RECOVERY else recovery == 1,
    )


def _apply_config(image: MetadataImage, record: ConfigRecord, delta: MetadataDelta) -> None:
    resource = ConfigResource(record.resource_type, record.resource_name)
    image.set_config(resource, record.name, record.value)
    delta.configs.add(resource)


def _apply_register(image: MetadataImage, record: RegisterBrokerRecord, delta: MetadataDelta) -> None:
    image.brokers[record.broker_id] = BrokerRegistration(
        BrokerId(record.broker_id),
        BrokerEpoch(record.broker_epoch),
        record.incarnation_id,
        tuple(Endpoint(end.name, end.host, end.port, end.security_protocol) for end in record.end_points),
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        tuple(record.log_dirs),
        {f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
    )
    delta.brokers.add(record.broker_id)


def _apply_registration_change(
    image: MetadataImage, record: BrokerRegistrationChangeRecord, delta: MetadataDelta
) -> None:
    broker = image.brokers.get(record.broker_id)
    if broker is None or broker.epoch != record.broker_epoch:
        raise CorruptLog(f"a change of broker {record.broker_id}, epoch {record.broker_epoch}, is not ours")
    if record.fenced in (FENCED, UNFENCED):
        broker = broker._replace(fenced=record.fenced == FENCED)
    if record.in_controlled_shutdown == STOPPING:
        broker = broker._replace(stopping=True)
    if record.log_dirs:
        broker = broker._replace(directories=tuple(record.log_dirs))
    image.brokers[record.broker_id] = broker
    delta.brokers.add(record.broker_id)


def _apply_unregister(image: MetadataImage, record: UnregisterBrokerRecord, delta: MetadataDelta) -> None:
    image.brokers.pop(record.broker_id, None)
    delta.brokers.add(record.broker_id)


def _apply_producer_ids(image: MetadataImage, record: ProducerIdsRecord, delta: MetadataDelta) -> None:
    if record.next_producer_id < image.next_producer_id:
        raise CorruptLog(f"producer ids go back from {image.next_producer_id} to {record.next_producer_id}")
    image.next_producer_id = record.next_producer_id
    delta.producer_ids = True


def _apply_feature(image: MetadataImage, record: FeatureLevelRecord, delta: MetadataDelta) -> None:
    image.set_feature(record.name, record.feature_level)
    delta.features.add(record.name)


def _apply_nothing(image: MetadataImage, record: NoOpRecord, delta: MetadataDelta) -> None:
    """A record that only marks the beginning of a controller's epoch."""


_APPLIERS: dict[type[Message], Callable[[MetadataImage, Any, MetadataDelta], None]] = {
    TopicRecord: _apply_topic,
    RemoveTopicRecord: _apply_remove_topic,
    PartitionRecord: _apply_partition,
    PartitionChangeRecord: _apply_partition_change,
    ConfigRecord: _apply_config,
    RegisterBrokerRecord: _apply_register,
    BrokerRegistrationChangeRecord: _apply_registration_change,
    UnregisterBrokerRecord: _apply_unregister,
    ProducerIdsRecord: _apply_producer_ids,
    FeatureLevelRecord: _apply_feature,
    NoOpRecord: _apply_nothing,
    **SECURITY_APPLIERS,
}

KNOWN_RECORDS: tuple[type[Message], ...] = (
    *_APPLIERS,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
)
"""Every kind of record that this version can read."""
