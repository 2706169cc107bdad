from __future__ import annotations

from uuid import UUID

import pytest

from headrace.controller.delta import MetadataDelta, RemovedTopic
from headrace.controller.image import DEFAULT_BROKER, ConfigResource, MetadataImage, ResourceType
from headrace.controller.operations import ConfigChange, ConfigOp, MorePartitions, NewTopic, TopicDeletion
from headrace.controller.replay import Replayer
from headrace.controller.topic_image import UNASSIGNED_DIRECTORY
from headrace.core.errors import CorruptLog
from headrace.core.ids import BrokerId
from headrace.protocol.message import Message
from headrace.protocol.stored.abort_transaction_record import AbortTransactionRecord
from headrace.protocol.stored.begin_transaction_record import BeginTransactionRecord
from headrace.protocol.stored.end_transaction_record import EndTransactionRecord
from headrace.protocol.stored.no_op_record import NoOpRecord
from headrace.protocol.stored.partition_change_record import PartitionChangeRecord
from headrace.protocol.stored.partition_record import PartitionRecord
from headrace.protocol.stored.remove_topic_record import RemoveTopicRecord
from headrace.protocol.stored.topic_record import TopicRecord
from headrace.protocol.stored.unregister_broker_record import UnregisterBrokerRecord
from headrace.protocol.stored.zk_migration_state_record import ZkMigrationStateRecord
from tests.unit.controller.cluster import Cluster, said

ID = UUID(int=77)


def test_a_change_touches_only_what_it_names() -> None:
    cluster = Cluster([0, 1, 2])
    topic_id = cluster.create("t", assignments=[(0, [0, 1]), (1, [1, 2])])
    topic = cluster.image.topics_by_name["t"]
    untouched, before = topic.state(1), topic.state(0)
    cluster.apply([PartitionChangeRecord(partition_id=0, topic_id=topic_id, isr=[0])])
    assert topic.state(0) == before._replace(isr=(0,), partition_epoch=1)
    cluster.apply([PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=0)])
    assert topic.state(0) == before._replace(isr=(0,), partition_epoch=2, leader_epoch=1)
    moving = PartitionChangeRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=[0, 1, 2],
        adding_replicas=[2],
        directories=[UUID(int=1), UUID(int=2), UUID(int=3)],
        last_known_elr=[1],
    )
    cluster.apply([moving])
    state = topic.state(0)
    assert (state.replicas, state.exceptional.adding) == ((0, 1, 2), (2,))
    assert state.directories == (UUID(int=1), UUID(int=2), UUID(int=3))
    assert state.exceptional.last_known_elr == (1,)
    assert (state.leader, state.leader_epoch, state.isr) == (0, 1, (0,))
    assert topic.state(1) == untouched


def test_replicas_without_directories_have_none_assigned() -> None:
    cluster = Cluster([0, 1])
    topic_id = cluster.create("t", assignments=[(0, [0])])
    cluster.apply([PartitionChangeRecord(partition_id=0, topic_id=topic_id, replicas=[0, 1])])
    assert cluster.image.topics_by_name["t"].directories(0) == (UNASSIGNED_DIRECTORY,) * 2


@pytest.mark.parametrize(
    "records",
    [
        [RemoveTopicRecord(topic_id=ID)],
        [PartitionRecord(partition_id=0, topic_id=ID)],
        [PartitionChangeRecord(partition_id=0, topic_id=ID)],
        [TopicRecord(name="t", topic_id=ID), TopicRecord(name="t", topic_id=UUID(int=78))],
        [TopicRecord(name="t", topic_id=ID), TopicRecord(name="u", topic_id=ID)],
        [TopicRecord(name="t", topic_id=ID), PartitionRecord(partition_id=1, topic_id=ID)],
        [TopicRecord(name="t", topic_id=ID), PartitionChangeRecord(partition_id=0, topic_id=ID)],
        [EndTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
        [ZkMigrationStateRecord()],
    ],
    ids=lambda records: "+".join(type(record).__name__ for record in records),
)
def test_what_does_not_fit_stops_the_broker(records: list[Message]) -> None:
    with pytest.raises(CorruptLog):
        Replayer(MetadataImage()).replay_all(records, MetadataDelta())


def test_a_transaction_appears_at_its_end_or_not_at_all() -> None:
    replayer = Replayer(MetadataImage())
    topic = TopicRecord(name="t", topic_id=ID)
    open_after = []
    for record in (BeginTransactionRecord(), topic, AbortTransactionRecord()):
        replayer.replay(record, MetadataDelta())
        open_after.append(replayer.in_transaction)
        assert not replayer.image.topics_by_name
    assert open_after == [True, True, False]
    delta = MetadataDelta()
    replayer.replay_all([BeginTransactionRecord(), topic, EndTransactionRecord()], delta)
    assert replayer.image.topic_names() == ["t"]
    assert delta.created_topics == [ID]


def test_the_delta_names_what_changed_and_nothing_else() -> None:
    cluster = Cluster([0, 1])
    kept = cluster.create("kept", 3)
    gone = cluster.create("gone", 2)
    machine = cluster.machine

    delta = cluster.apply(machine.create_topics([NewTopic("new", 2)]).records)
    new = cluster.image.topics_by_name["new"].topic_id
    assert delta.created_topics == [new]
    assert {topic: list(touched) for topic, touched in delta.partitions.items()} == {new: [0, 1]}
    assert not delta.configs
    assert not delta.brokers

    delta = cluster.apply(machine.create_partitions([MorePartitions("kept", 5)]).records)
    assert {topic: list(touched) for topic, touched in delta.partitions.items()} == {kept: [3, 4]}
    assert not delta.created_topics

    delta = cluster.apply(machine.delete_topics([TopicDeletion("gone")]).records)
    assert delta.removed_topics == [RemovedTopic("gone", gone, 2)]
    assert not delta.partitions

    resource = ConfigResource(ResourceType.TOPIC, "kept")
    changes = [ConfigChange(ConfigOp.SET, "retention.ms", "1")]
    delta = cluster.apply(machine.incremental_alter_configs([(resource, changes)]).records)
    assert delta.configs == {resource}

    epoch = cluster.image.brokers[1].epoch
    delta = cluster.apply(machine.fence_brokers([1]).records)
    assert delta.brokers == {1}
    delta = cluster.apply(machine.allocate_producer_ids(BrokerId(1), epoch).records)
    assert delta.producer_ids
    assert not cluster.apply([NoOpRecord()])


def test_a_topic_that_came_and_went_within_one_delta_is_only_gone() -> None:
    cluster = Cluster()
    records = cluster.machine.create_topics([NewTopic("t")]).records
    topic_id = records[0].topic_id  # type: ignore[attr-defined]  # the first record is the TopicRecord
    delta = cluster.apply([*records, RemoveTopicRecord(topic_id=topic_id)])
    assert not delta.created_topics
    assert not delta.partitions
    assert delta.removed_topics == [RemovedTopic("t", topic_id, 1)]


def test_an_unregistered_broker_is_forgotten() -> None:
    cluster = Cluster([0, 1])
    delta = cluster.apply([UnregisterBrokerRecord(broker_id=1, broker_epoch=11)])
    assert set(cluster.image.brokers) == {0}
    assert delta.brokers == {1}


def test_the_collision_index_follows_the_topics() -> None:
    cluster = Cluster()
    cluster.create("a.b")
    assert cluster.image.name_collision("a_b") == "a.b"
    assert cluster.image.name_collision("a.b") is None
    cluster.do(cluster.machine.delete_topics([TopicDeletion("a.b")]))
    assert cluster.image.name_collision("a_b") is None
    cluster.create("a_b")


def test_snapshots_say_everything() -> None:
    cluster = Cluster([0, 1], racks={0: "r0"})
    topic_id = cluster.create("t", 3, 2, configs=[("retention.ms", "5")])
    cluster.do(cluster.machine.allocate_producer_ids(BrokerId(0), cluster.image.brokers[0].epoch))
    rare = PartitionChangeRecord(
        partition_id=1, topic_id=topic_id, isr=[1], eligible_leader_replicas=[0], leader_recovery_state=1
    )
    cluster.apply([rare])
    changes = [ConfigChange(ConfigOp.SET, "log.retention.ms", "1")]
    cluster.do(cluster.machine.incremental_alter_configs([(DEFAULT_BROKER, changes)]))
    replayer = Replayer(MetadataImage())
    replayer.replay_all(said(cluster.image), MetadataDelta())
    assert said(replayer.image) == said(cluster.image)
    assert replayer.image.topics_by_name["t"].state(1) == cluster.image.topics_by_name["t"].state(1)
    assert replayer.image.partition_count == 3
