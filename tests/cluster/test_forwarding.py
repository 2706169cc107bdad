"""Requests that only the controller can decide, sent to brokers that are not the active controller."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from headrace.protocol.messages import (
    alter_configs_request,
    incremental_alter_configs_request,
)
from headrace.protocol.messages.alter_configs_request import AlterConfigsRequest
from headrace.protocol.messages.alter_configs_response import AlterConfigsResponse
from headrace.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
)
from headrace.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from headrace.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from headrace.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from headrace.protocol.messages.create_partitions_response import CreatePartitionsResponse
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.create_topics_response import CreateTopicsResponse
from headrace.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.messages.delete_topics_response import DeleteTopicsResponse
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from headrace.protocol.messages.elect_leaders_response import ElectLeadersResponse
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from headrace.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.init_producer_id_response import InitProducerIdResponse
from headrace.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from headrace.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
)
from headrace.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from headrace.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from headrace.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from headrace.protocol.messages.update_features_response import UpdateFeaturesResponse
from tests.cluster_process import HeadraceCluster, eventually
from tests.wire import Wire

TOPIC_EXISTS = 36
BROKER_ID_NOT_REGISTERED = 102
ELECTION_NOT_NEEDED = 84
INVALID_UPDATE_VERSION = 95
TOPIC, BROKER, GROUP = 2, 4, 32
SECONDS = 30


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceCluster]:
    with HeadraceCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def elsewhere(cluster: HeadraceCluster) -> Iterator[Wire]:
    """A connection to a broker that is not the active controller."""
    controller = cluster.view().controller
    number = next(one for one in cluster.brokers if one != controller)
    with Wire(cluster.brokers[number].port, timeout=SECONDS) as wire:
        yield wire


def create(wire: Wire, name: str) -> int:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(name=name, num_partitions=2, replication_factor=3, assignments=[], configs=[])
        ],
        timeout_ms=10_000,
    )
    answer: CreateTopicsResponse = wire.ask(request, 7, CreateTopicsResponse)
    return answer.topics[0].error_code


def test_topics_are_created_grown_and_deleted(cluster: HeadraceCluster, elsewhere: Wire) -> None:
    assert create(elsewhere, "forwarded") == 0
    assert create(elsewhere, "forwarded") == TOPIC_EXISTS
    cluster.wait_in_sync("forwarded")
    grown: CreatePartitionsResponse = elsewhere.ask(
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="forwarded", count=5, assignments=None)], timeout_ms=10_000
        ),
        3,
        CreatePartitionsResponse,
    )
    assert grown.results[0].error_code == 0
    eventually(lambda: len(cluster.view("forwarded").partitions) == 5, 10, "five partitions")
    deleted: DeleteTopicsResponse = elsewhere.ask(
        DeleteTopicsRequest(topics=[DeleteTopicState(name="forwarded")], timeout_ms=10_000),
        6,
        DeleteTopicsResponse,
    )
    assert deleted.responses[0].error_code == 0
    eventually(lambda: not cluster.view("forwarded").partitions, 10, "the topic is gone")


def test_configurations_are_altered(cluster: HeadraceCluster, elsewhere: Wire) -> None:
    cluster.create_topic("configured", [[1, 2, 3]])
    incremental: IncrementalAlterConfigsResponse = elsewhere.ask(
        IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs_request.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        incremental_alter_configs_request.AlterableConfig(
                            name=key, config_operation=0, value=value
                        )
                    ],
                )
                for kind, name, key, value in (
                    (TOPIC, "configured", "retention.ms", "7200000"),
                    (BROKER, "1", "leader.replication.throttled.rate", "5000"),
                )
            ]
        ),
        1,
        IncrementalAlterConfigsResponse,
    )
    assert [one.error_code for one in incremental.responses] == [0, 0]
    whole: AlterConfigsResponse = elsewhere.ask(
        AlterConfigsRequest(
            resources=[
                alter_configs_request.AlterConfigsResource(
                    resource_type=TOPIC,
                    resource_name="configured",
                    configs=[alter_configs_request.AlterableConfig(name="segment.bytes", value="2000000")],
                )
            ]
        ),
        2,
        AlterConfigsResponse,
    )
    assert [one.error_code for one in whole.responses] == [0]
    for number, broker in cluster.brokers.items():
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})

        def settings(resource: ConfigResource, admin: AdminClient = admin) -> dict[str, str]:
            (answer,) = admin.describe_configs([resource]).values()
            return {key: entry.value for key, entry in answer.result(SECONDS).items()}

        def told(number: int = number) -> bool:
            topic = settings(ConfigResource(ConfigResource.Type.TOPIC, "configured"))
            own = settings(ConfigResource(ConfigResource.Type.BROKER, str(number)))
            return (
                topic["segment.bytes"] == "2000000"
                and topic["retention.ms"] == "604800000"
                and (own.get("leader.replication.throttled.rate") == "5000") == (number == 1)
            )

        eventually(told, 10, f"broker {number} knows the new configuration")


def test_replicas_move_and_leaders_are_elected(cluster: HeadraceCluster, elsewhere: Wire) -> None:
    cluster.create_topic("moving", [[1, 2]])
    moved: AlterPartitionReassignmentsResponse = elsewhere.ask(
        AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            topics=[
                ReassignableTopic(
                    name="moving",
                    partitions=[ReassignablePartition(partition_index=0, replicas=[3, 1])],
                )
            ],
        ),
        0,
        AlterPartitionReassignmentsResponse,
    )
    assert (moved.error_code, moved.responses[0].partitions[0].error_code) == (0, 0)

    def still_moving() -> int:
        listed: ListPartitionReassignmentsResponse = elsewhere.ask(
            ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None),
            0,
            ListPartitionReassignmentsResponse,
        )
        assert listed.error_code == 0
        return len(listed.topics)

    eventually(lambda: not still_moving(), 20, "the reassignment completes")
    assert cluster.partition("moving").replicas == (3, 1)
    elected: ElectLeadersResponse = elsewhere.ask(
        ElectLeadersRequest(
            election_type=0,
            topic_partitions=[TopicPartitions(topic="moving", partitions=[0])],
            timeout_ms=10_000,
        ),
        2,
        ElectLeadersResponse,
    )
    assert elected.error_code == 0
    assert elected.replica_election_results[0].partition_result[0].error_code in (0, ELECTION_NOT_NEEDED)
    eventually(lambda: cluster.leader("moving") == 3, 10, "the preferred replica leads")


def test_configs_of_groups_hold_at_every_coordinator(cluster: HeadraceCluster, elsewhere: Wire) -> None:
    """Whichever broker is the group's, and whichever was asked."""
    groups = [f"configured-{number}" for number in range(6)]
    change = incremental_alter_configs_request.AlterableConfig(
        name="consumer.heartbeat.interval.ms", config_operation=0, value="7000"
    )
    altered: IncrementalAlterConfigsResponse = elsewhere.ask(
        IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs_request.AlterConfigsResource(
                    resource_type=GROUP, resource_name=group, configs=[change]
                )
                for group in groups
            ]
        ),
        1,
        IncrementalAlterConfigsResponse,
    )
    assert [each.error_code for each in altered.responses] == [0] * len(groups)

    def interval(group: str) -> int | None:
        """As its coordinator tells it."""
        asked = FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
        found: FindCoordinatorResponse = elsewhere.ask(asked, 4, FindCoordinatorResponse)
        if found.coordinators[0].error_code:
            return None
        joining = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=["nothing"],
            topic_partitions=[],
        )
        with Wire(found.coordinators[0].port, timeout=SECONDS) as wire:
            beat: ConsumerGroupHeartbeatResponse = wire.ask(joining, 1, ConsumerGroupHeartbeatResponse)
        return None if beat.error_code else beat.heartbeat_interval_ms

    eventually(
        lambda: all(interval(group) == 7_000 for group in groups), SECONDS, "each has its own interval"
    )
    assert interval("another") == 5_000


def test_features_are_updated_by_the_controller(elsewhere: Wire) -> None:
    def update(level: int) -> UpdateFeaturesResponse:
        asked = FeatureUpdateKey(feature="transaction.version", max_version_level=level)
        answer: UpdateFeaturesResponse = elsewhere.ask(
            UpdateFeaturesRequest(feature_updates=[asked]), 2, UpdateFeaturesResponse
        )
        return answer

    assert update(2).error_code == 0
    refused = update(9)
    assert refused.error_code == INVALID_UPDATE_VERSION
    assert "supports 0 to 2" in str(refused.error_message)


def test_what_the_controller_refuses_is_told(elsewhere: Wire) -> None:
    refused: UnregisterBrokerResponse = elsewhere.ask(
        UnregisterBrokerRequest(broker_id=99), 0, UnregisterBrokerResponse
    )
    assert refused.error_code == BROKER_ID_NOT_REGISTERED


def test_producer_ids_are_never_given_twice(cluster: HeadraceCluster) -> None:
    given: list[int] = []
    for broker in cluster.brokers.values():
        with Wire(broker.port) as wire:
            for _ in range(3):
                answer: InitProducerIdResponse = wire.ask(
                    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0),
                    4,
                    InitProducerIdResponse,
                )
                assert answer.error_code == 0
                given.append(answer.producer_id)
    assert len(set(given)) == 9


def test_a_controller_that_dies_is_waited_for(cluster: HeadraceCluster) -> None:
    controller = cluster.view().controller
    other = next(one for one in cluster.brokers if one != controller)
    with Wire(cluster.brokers[other].port, timeout=SECONDS) as wire:
        cluster.kill(controller)
        assert create(wire, "between-two-controllers") == 0
    cluster.restart(controller)
    cluster.wait_whole()
    cluster.wait_in_sync("between-two-controllers")


def test_librdkafka_administers_by_any_broker(cluster: HeadraceCluster) -> None:
    for number, broker in cluster.brokers.items():
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        name = f"by-{number}"
        admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=3)])[name].result(SECONDS)
        admin.create_partitions([NewPartitions(name, 3)])[name].result(SECONDS)
        changes = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in (("retention.ms", "3600000"), ("min.insync.replicas", "2"))
        ]
        for resource in (
            ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=changes),
            ConfigResource(
                ConfigResource.Type.BROKER,
                str(number),
                incremental_configs=[
                    ConfigEntry("log.retention.ms", "86400000", incremental_operation=AlterConfigOpType.SET)
                ],
            ),
        ):
            admin.incremental_alter_configs([resource])[resource].result(SECONDS)
        admin.delete_topics([name])[name].result(SECONDS)


def test_epochs_only_rise(cluster: HeadraceCluster) -> None:
    """Two leaders after one another never share an epoch, whoever asks for the change."""
    cluster.create_topic("rising", [[1, 2, 3]])
    epochs = [cluster.partition("rising").leader_epoch]
    for _ in range(2):
        leader = cluster.leader("rising")
        cluster.kill(leader)
        eventually(lambda leader=leader: cluster.leader("rising") not in (leader, -1), 20, "a new leader")  # type: ignore[misc]
        epochs.append(cluster.partition("rising").leader_epoch)
        cluster.restart(leader)
        cluster.wait_whole()
        cluster.wait_in_sync("rising")
    assert all(before < after for before, after in pairwise(epochs))
