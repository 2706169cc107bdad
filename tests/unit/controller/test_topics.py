from __future__ import annotations

from uuid import UUID

import pytest

from headrace.controller.operations import MorePartitions, NewTopic, TopicDeletion
from headrace.controller.topic_image import UNASSIGNED_DIRECTORY
from headrace.controller.topics import MOST_PARTITIONS, TopicDefaults
from headrace.core.errors import (
    ClientError,
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    PolicyViolation,
    TopicExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from headrace.core.ids import BrokerEpoch
from tests.unit.controller.cluster import Cluster, description, said


def test_a_topic_is_born_led_and_in_sync() -> None:
    cluster = Cluster([0, 1, 2])
    topic_id = cluster.create("orders", 4, 3)
    topic = cluster.image.topic("orders")
    assert topic is cluster.image.topic_by_id(topic_id)
    assert topic is not None
    assert len(topic) == 4
    for partition in range(4):
        state = topic.state(partition)
        assert sorted(state.replicas) == [0, 1, 2]
        assert state.isr == state.replicas
        assert state.leader == state.replicas[0]
        assert (state.leader_epoch, state.partition_epoch) == (0, 0)
        assert state.directories == tuple(UUID(int=(b + 1) * 100) for b in state.replicas)
    assert topic_id.version == 4


def test_a_broker_with_several_directories_has_not_chosen_yet() -> None:
    cluster = Cluster([])
    cluster.do(cluster.machine.register_broker(description(7, directories=2), BrokerEpoch(1), fenced=False))
    cluster.create("t")
    assert cluster.image.topics_by_name["t"].directories(0) == (UNASSIGNED_DIRECTORY,)


def test_minus_one_means_the_default() -> None:
    cluster = Cluster([0, 1], defaults=TopicDefaults(5, 2))
    (created,) = cluster.do(cluster.machine.create_topics([NewTopic("t")]))
    assert (created.num_partitions, created.replication_factor) == (5, 2)


def test_a_decision_changes_nothing() -> None:
    cluster = Cluster([0, 1])
    cluster.create("t", 2)
    before = said(cluster.image)
    cluster.machine.create_topics([NewTopic("u", 3)])
    cluster.machine.delete_topics([TopicDeletion("t")])
    cluster.machine.create_partitions([MorePartitions("t", 5)])
    assert said(cluster.image) == before


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewTopic("a/b"), InvalidTopic),
        (NewTopic("."), InvalidTopic),
        (NewTopic("taken"), TopicExists),
        (NewTopic("ta.ken_too"), InvalidTopic),
        (NewTopic("__cluster_metadata"), InvalidRequest),
        (NewTopic("t", 0), InvalidPartitions),
        (NewTopic("t", -2), InvalidPartitions),
        (NewTopic("t", 1, 0), InvalidReplicationFactor),
        (NewTopic("t", 1, -2), InvalidReplicationFactor),
        (NewTopic("t", 1, 3), InvalidReplicationFactor),
        (NewTopic("t", MOST_PARTITIONS + 1), PolicyViolation),
        (NewTopic("t", configs=[("no.such", "1")]), InvalidConfig),
        (NewTopic("t", configs=[("retention.ms", "soon")]), InvalidConfig),
        (NewTopic("t", configs=[("retention.ms", None)]), InvalidConfig),
        (NewTopic("t", configs=[("retention.ms", "1"), ("retention.ms", "2")]), InvalidConfig),
        (NewTopic("t", 1, assignments=[(0, [0])]), InvalidRequest),
        (NewTopic("t", -1, 1, assignments=[(0, [0])]), InvalidRequest),
        (NewTopic("t", assignments=[(0, [0]), (0, [1])]), InvalidReplicaAssignment),
        (NewTopic("t", assignments=[(1, [0])]), InvalidReplicaAssignment),
        (NewTopic("t", assignments=[(0, [])]), InvalidReplicaAssignment),
        (NewTopic("t", assignments=[(0, [0, 0])]), InvalidReplicaAssignment),
        (NewTopic("t", assignments=[(0, [9])]), InvalidReplicaAssignment),
        (NewTopic("t", assignments=[(0, [0]), (1, [0, 1])]), InvalidReplicaAssignment),
    ],
)
def test_refused(new: NewTopic, error: type[ClientError]) -> None:
    cluster = Cluster([0, 1])
    cluster.create("taken")
    cluster.create("ta_ken.too")
    result = cluster.machine.create_topics([new])
    assert result.records == []
    (outcome,) = result.response
    assert outcome.name == new.name
    assert type(outcome.error) is error


def test_a_manual_assignment_is_kept_in_its_order() -> None:
    cluster = Cluster([0, 1, 2])
    cluster.create("t", assignments=[(1, [2, 0]), (0, [1, 2])])
    topic = cluster.image.topics_by_name["t"]
    assert [topic.replicas(0), topic.replicas(1)] == [(1, 2), (2, 0)]


def test_a_fenced_replica_is_not_in_sync_and_does_not_lead() -> None:
    cluster = Cluster([0, 1])
    cluster.fence(0)
    cluster.create("t", assignments=[(0, [0, 1])])
    state = cluster.image.topics_by_name["t"].state(0)
    assert (state.replicas, state.isr, state.leader) == ((0, 1), (1,), 1)
    (outcome,) = cluster.machine.create_topics([NewTopic("u", assignments=[(0, [0])])]).response
    assert isinstance(outcome.error, InvalidReplicaAssignment)


def test_one_request_good_and_bad_together() -> None:
    cluster = Cluster([0])
    asked = [
        NewTopic("good"),
        NewTopic("twice"),
        NewTopic("twice", 2),
        NewTopic("bad name"),
        NewTopic("x.y"),
        NewTopic("x_y"),
    ]
    outcomes = {each.name: each.error for each in cluster.do(cluster.machine.create_topics(asked))}
    assert outcomes["good"] is None
    assert isinstance(outcomes["twice"], InvalidRequest)
    assert isinstance(outcomes["bad name"], InvalidTopic)
    assert outcomes["x.y"] is None
    assert isinstance(outcomes["x_y"], InvalidTopic)
    assert cluster.image.topic_names() == ["good", "x.y"]


def test_the_partition_limit_counts_the_whole_request() -> None:
    cluster = Cluster([0])
    half = MOST_PARTITIONS // 2
    result = cluster.machine.create_topics([NewTopic("a", half), NewTopic("b", half + 1)])
    assert result.records == []
    assert all(isinstance(outcome.error, PolicyViolation) for outcome in result.response)


def test_configs_are_stored_with_the_topic_and_go_with_it() -> None:
    cluster = Cluster([0])
    cluster.create("t", configs=[("retention.ms", "1000"), ("cleanup.policy", "compact")])
    assert cluster.image.topic_configs("t") == {"retention.ms": "1000", "cleanup.policy": "compact"}
    cluster.do(cluster.machine.delete_topics([TopicDeletion("t")]))
    assert cluster.image.topic_configs("t") == {}


def test_delete_by_name_and_by_id() -> None:
    cluster = Cluster([0])
    by_id = cluster.create("a", 3)
    cluster.create("b")
    cluster.create("c")
    outcomes = cluster.do(cluster.machine.delete_topics([TopicDeletion(topic_id=by_id), TopicDeletion("b")]))
    assert [(o.name, o.error) for o in outcomes] == [("a", None), ("b", None)]
    assert cluster.image.topic_names() == ["c"]
    assert cluster.image.partition_count == 1


def test_a_topic_made_again_is_another_topic() -> None:
    cluster = Cluster([0])
    first = cluster.create("t", 2)
    cluster.do(cluster.machine.delete_topics([TopicDeletion("t")]))
    assert cluster.create("t") != first
    assert cluster.image.topic_by_id(first) is None


@pytest.mark.parametrize(
    ("deletion", "error"),
    [
        (TopicDeletion("none"), UnknownTopicOrPartition),
        (TopicDeletion(topic_id=UUID(int=99)), UnknownTopicId),
        (TopicDeletion("t", UUID(int=99)), InvalidRequest),
        (TopicDeletion(), InvalidRequest),
    ],
)
def test_delete_refused(deletion: TopicDeletion, error: type[ClientError]) -> None:
    cluster = Cluster([0])
    cluster.create("t")
    result = cluster.machine.delete_topics([deletion])
    assert result.records == []
    assert [type(outcome.error) for outcome in result.response] == [error]


def test_a_topic_listed_twice_is_deleted_at_most_once() -> None:
    cluster = Cluster([0])
    topic_id = cluster.create("t")
    twice = cluster.machine.delete_topics([TopicDeletion("t"), TopicDeletion("t")])
    assert twice.records == []
    assert [type(outcome.error) for outcome in twice.response] == [InvalidRequest]
    both = cluster.machine.delete_topics([TopicDeletion("t"), TopicDeletion(topic_id=topic_id)])
    assert len(both.records) == 1
    assert [type(outcome.error) for outcome in both.response] == [type(None), InvalidRequest]


def test_partitions_grow_with_the_factor_of_the_topic() -> None:
    cluster = Cluster([0, 1, 2])
    cluster.create("t", 2, 2)
    (grown,) = cluster.do(cluster.machine.create_partitions([MorePartitions("t", 5)]))
    assert grown.error is None
    topic = cluster.image.topics_by_name["t"]
    assert len(topic) == 5
    assert all(len(topic.replicas(partition)) == 2 for partition in range(5))
    assert cluster.image.partition_count == 5


def test_added_partitions_may_be_assigned() -> None:
    cluster = Cluster([0, 1, 2])
    cluster.create("t", 1, 2)
    wanted = MorePartitions("t", 3, [[2, 1], [1, 0]])
    cluster.do(cluster.machine.create_partitions([wanted]))
    topic = cluster.image.topics_by_name["t"]
    assert [topic.replicas(1), topic.replicas(2)] == [(2, 1), (1, 0)]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (MorePartitions("none", 5), UnknownTopicOrPartition),
        (MorePartitions("t", 2), InvalidPartitions),
        (MorePartitions("t", 1), InvalidPartitions),
        (MorePartitions("t", -1), InvalidPartitions),
        (MorePartitions("t", MOST_PARTITIONS + 3), PolicyViolation),
        (MorePartitions("t", 4, [[0]]), InvalidReplicaAssignment),
        (MorePartitions("t", 3, [[0, 1]]), InvalidReplicaAssignment),
        (MorePartitions("t", 3, [[5]]), InvalidReplicaAssignment),
        (MorePartitions("t", 3, []), InvalidReplicaAssignment),
    ],
)
def test_growth_refused(wanted: MorePartitions, error: type[ClientError]) -> None:
    cluster = Cluster([0, 1])
    cluster.create("t", 2)
    result = cluster.machine.create_partitions([wanted])
    assert result.records == []
    assert [type(outcome.error) for outcome in result.response] == [error]


def test_a_topic_cannot_grow_twice_in_one_request() -> None:
    cluster = Cluster([0])
    cluster.create("t")
    result = cluster.machine.create_partitions([MorePartitions("t", 2), MorePartitions("t", 3)])
    assert result.records == []
    assert [type(outcome.error) for outcome in result.response] == [InvalidRequest]


def test_a_negative_count_makes_no_room_for_a_huge_one() -> None:
    cluster = Cluster([0])
    asked = [NewTopic("a", -(2**31 - 1)), NewTopic("b", 2**31 - 1)]
    outcomes = cluster.do(cluster.machine.create_topics(asked))
    assert all(outcome.error is not None for outcome in outcomes)
    assert not cluster.image.topics_by_name
