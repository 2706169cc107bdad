"""DescribeCluster, DescribeLogDirs, elections, reassignments, UnregisterBroker, and what only brokers say."""

from __future__ import annotations

from headrace.protocol.message import Message
from headrace.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from headrace.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.protocol.messages.alter_partition_request import AlterPartitionRequest
from headrace.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.protocol.messages.api_versions_request import ApiVersionsRequest
from headrace.protocol.messages.assign_replicas_to_dirs_request import AssignReplicasToDirsRequest
from headrace.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from headrace.protocol.messages.describe_cluster_request import DescribeClusterRequest
from headrace.protocol.messages.describe_log_dirs_request import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from headrace.protocol.messages.envelope_request import EnvelopeRequest
from headrace.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from headrace.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from headrace.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker_process import BROKER_ID
from tests.oracle.authorization.person import Person
from tests.oracle.authorization.world import World
from tests.oracle.conversation import versions

NAMED = ("lit", "shut", "absent")
NO_SUCH_BROKER = 99
BETWEEN_BROKERS: tuple[tuple[Message, int], ...] = (
    (EnvelopeRequest(request_data=b"", request_principal=b"", client_host_address=b"\x7f\0\0\1"), 0),
    (AlterPartitionRequest(broker_id=BROKER_ID), 3),
    (BrokerHeartbeatRequest(broker_id=BROKER_ID), 1),
    (AllocateProducerIdsRequest(broker_id=BROKER_ID), 0),
    (AssignReplicasToDirsRequest(broker_id=BROKER_ID), 0),
)


def ask(person: Person, world: World) -> None:
    del world
    _cluster(person)
    _directories(person)
    _elections(person)
    _reassignments(person)
    _administration(person)
    person.ask("unregister a broker", UnregisterBrokerRequest(broker_id=NO_SUCH_BROKER), 0)
    for request, version in BETWEEN_BROKERS:
        person.ask(type(request).__name__, request, version)
    _sasl_again(person)


def _cluster(person: Person) -> None:
    for version in versions(DescribeClusterRequest):
        for flag in (True, False):
            asked = DescribeClusterRequest(include_cluster_authorized_operations=flag)
            person.ask(f"describe the cluster, operations {flag}", asked, version)
    answer = person.user.quietly(ApiVersionsRequest(), 3)
    person.note("versions", error_code=answer.error_code)


def _directories(person: Person) -> None:
    for version in versions(DescribeLogDirsRequest):
        topics = [DescribableLogDirTopic(topic=name, partitions=[0]) for name in NAMED]
        person.ask("describe directories", DescribeLogDirsRequest(topics=topics), version)
        if person.state == "nothing":  # sizes of internal topics differ
            person.ask("describe all directories", DescribeLogDirsRequest(topics=None), version)
        person.ask("describe empty directories", DescribeLogDirsRequest(topics=[]), version)


def _elections(person: Person) -> None:
    for version in versions(ElectLeadersRequest):
        topics = [TopicPartitions(topic=name, partitions=[0]) for name in NAMED]
        person.ask("elect", ElectLeadersRequest(topic_partitions=topics, timeout_ms=5000), version)
    if person.state == "nothing":  # who may, may move something
        person.ask("elect all", ElectLeadersRequest(topic_partitions=None, timeout_ms=5000), 2)
    person.ask("elect nobody", ElectLeadersRequest(topic_partitions=[], timeout_ms=5000), 2)


def _reassignments(person: Person) -> None:
    for version in versions(AlterPartitionReassignmentsRequest):
        for replicas in (None, [BROKER_ID], [NO_SUCH_BROKER]):
            topics = [
                ReassignableTopic(
                    name=name, partitions=[ReassignablePartition(partition_index=0, replicas=replicas)]
                )
                for name in NAMED
            ]
            asked = AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=5000)
            person.ask(f"reassign to {replicas}", asked, version)
    listed = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0]) for name in NAMED]
    person.ask("list reassignments", ListPartitionReassignmentsRequest(topics=listed), 0)
    person.ask("list all reassignments", ListPartitionReassignmentsRequest(topics=None), 0)


def _administration(person: Person) -> None:
    """Nothing that would change anything: directories and features that there are not."""
    for version in versions(AlterReplicaLogDirsRequest):
        topics = [AlterReplicaLogDirTopic(name=name, partitions=[0]) for name in NAMED]
        moved = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path="/nowhere", topics=topics)])
        person.ask("move to another directory", moved, version)
    for version in versions(UpdateFeaturesRequest):
        update = FeatureUpdateKey(feature="strange.version", max_version_level=1)
        asked = UpdateFeaturesRequest(feature_updates=[update], validate_only=version >= 1)
        person.ask("update a strange feature", asked, version)
        person.ask("update no features", UpdateFeaturesRequest(feature_updates=[]), version)
    person.ask("list resources with configs", ListConfigResourcesRequest(), 0)
    person.ask("list topics and brokers with configs", ListConfigResourcesRequest(resource_types=[2, 4]), 1)
    person.ask("list strange resources", ListConfigResourcesRequest(resource_types=[77]), 1)


def _sasl_again(person: Person) -> None:
    """Where nobody has to authenticate again, nobody may."""
    person.ask("handshake again", SaslHandshakeRequest(mechanism="PLAIN"), 1)
    person.ask("authenticate again", SaslAuthenticateRequest(auth_bytes=b"\0bob\0bob-secret"), 2)
    person.user.reconnect()
