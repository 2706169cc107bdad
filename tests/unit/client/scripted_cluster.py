"""A scripted broker that knows of a cluster: it takes orders to move replicas, and is done a little later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
)
from headrace.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from headrace.protocol.messages.describe_cluster_request import DescribeClusterRequest
from headrace.protocol.messages.describe_cluster_response import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from headrace.protocol.messages.describe_configs_request import DescribeConfigsRequest
from headrace.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from headrace.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from headrace.protocol.messages.elect_leaders_request import ElectLeadersRequest
from headrace.protocol.messages.elect_leaders_response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from headrace.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from headrace.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from headrace.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest,
)
from headrace.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from headrace.protocol.messages.unregister_broker_response import UnregisterBrokerResponse
from tests.unit.client.scripted_broker import ScriptedBroker

Partition = tuple[str, int]


class ScriptedCluster(ScriptedBroker):
    """One socket plays every broker. `questions` is how often a move is asked about before it is over."""

    def __init__(
        self, brokers: dict[int, str | None], partitions: dict[Partition, list[int]], questions: int = 2
    ) -> None:
        super().__init__()
        self.handlers.update(
            {
                MetadataRequest: self._all,
                DescribeClusterRequest: self._cluster,
                DescribeConfigsRequest: self._configs,
                DescribeLogDirsRequest: self._log_dirs,
                AlterPartitionReassignmentsRequest: self._reassign,
                ListPartitionReassignmentsRequest: self._list,
                ElectLeadersRequest: self._elect,
                IncrementalAlterConfigsRequest: self._alter,
                UnregisterBrokerRequest: lambda _request, _version: UnregisterBrokerResponse(),
            }
        )
        self.brokers = brokers
        self.down: set[int] = set()
        self.partitions = partitions
        self.isr = {partition: list(replicas) for partition, replicas in partitions.items()}
        self.leaders = {partition: replicas[0] for partition, replicas in partitions.items()}
        self.moving: dict[Partition, tuple[list[int], int]] = {}
        self.questions = questions
        self.settings: dict[tuple[int, str], dict[str, str]] = {}
        self.history: list[str] = []
        self.told: dict[str, dict[str, str]] = {}
        """What DescribeConfigs says of a resource besides."""

    def fail(self, broker_id: int) -> None:
        self.down.add(broker_id)
        for partition, isr in self.isr.items():
            self.isr[partition] = [b for b in isr if b != broker_id] or isr
            if self.leaders[partition] == broker_id:
                alive = [b for b in self.isr[partition] if b not in self.down]
                self.leaders[partition] = alive[0] if alive else -1

    def _all(self, request: MetadataRequest, _version: int) -> MetadataResponse:
        names = {name: None for name, _ in self.partitions}
        if request.topics is not None:
            names = {topic.name or "": None for topic in request.topics}
        topics = []
        for name in names:
            indexes = [index for topic, index in self.partitions if topic == name]
            topics.append(
                MetadataResponseTopic(
                    name=name,
                    error_code=0 if indexes else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=self.leaders[name, index],
                            replica_nodes=self.partitions[name, index],
                            isr_nodes=self.isr[name, index],
                        )
                        for index in indexes
                    ],
                )
            )
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=broker_id, host="127.0.0.1", port=self.port)
                for broker_id in self.brokers
                if broker_id not in self.down
            ],
            controller_id=min(self.brokers),
            topics=topics,
        )

    def _cluster(self, _request: Any, _version: int) -> DescribeClusterResponse:
        return DescribeClusterResponse(
            cluster_id="scripted",
            controller_id=min(self.brokers),
            brokers=[
                DescribeClusterBroker(
                    broker_id=b, host="127.0.0.1", port=self.port, rack=rack, is_fenced=b in self.down
                )
                for b, rack in self.brokers.items()
            ],
        )

    def _configs(self, request: DescribeConfigsRequest, _version: int) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=[
                        DescribeConfigsResourceResult(name="min.insync.replicas", value="2", config_source=1),
                        *self._told(resource.resource_name, resource.configuration_keys or ()),
                    ],
                )
                for resource in request.resources
            ]
        )

    def _told(self, name: str, asked: Sequence[str]) -> list[DescribeConfigsResourceResult]:
        """A setting of a broker is what was set for all, and a report is what begins with its name."""
        of_all = self.settings.get((4, ""), {}) if name.isdecimal() else {}
        values = {**self.told.get(name, {}), **of_all}
        return [
            DescribeConfigsResourceResult(name=each, value=value, config_source=3)
            for each, value in values.items()
            if any(each == wanted or each.startswith(f"{wanted}.") for wanted in asked)
        ]

    def _log_dirs(self, request: DescribeLogDirsRequest, _version: int) -> DescribeLogDirsResponse:
        topics = [
            DescribeLogDirsTopic(
                name=topic.topic,
                partitions=[
                    DescribeLogDirsPartition(partition_index=index, partition_size=100, offset_lag=7)
                    for index in topic.partitions
                ],
            )
            for topic in request.topics or []
        ]
        return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir="/d", topics=topics)])

    def _reassign(
        self, request: AlterPartitionReassignmentsRequest, _version: int
    ) -> AlterPartitionReassignmentsResponse:
        responses = []
        for topic in request.topics:
            results = []
            for entry in topic.partitions:
                key = (topic.name, entry.partition_index)
                code = 0
                if entry.replicas is None:
                    self.moving.pop(key, None)
                    self.history.append(f"cancel {key[0]}-{key[1]}")
                elif any(broker_id not in self.brokers for broker_id in entry.replicas):
                    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
                else:
                    self.moving[key] = (list(entry.replicas), self.questions)
                    self.history.append(f"move {key[0]}-{key[1]}")
                results.append(
                    ReassignablePartitionResponse(partition_index=entry.partition_index, error_code=code)
                )
            responses.append(ReassignableTopicResponse(name=topic.name, partitions=results))
        return AlterPartitionReassignmentsResponse(responses=responses)

    def _list(
        self, request: ListPartitionReassignmentsRequest, _version: int
    ) -> ListPartitionReassignmentsResponse:
        asked = None
        if request.topics is not None:
            asked = {(topic.name, index) for topic in request.topics for index in topic.partition_indexes}
        topics = []
        for key, (target, left) in list(self.moving.items()):
            if asked is not None and key not in asked:
                continue
            if not left:
                del self.moving[key]
                self.partitions[key], self.isr[key] = target, target
                continue
            self.moving[key] = (target, left - 1)
            before = self.partitions[key]
            ongoing = OngoingPartitionReassignment(
                partition_index=key[1],
                replicas=list(dict.fromkeys([*before, *target])),
                adding_replicas=[b for b in target if b not in before],
                removing_replicas=[b for b in before if b not in target],
            )
            topics.append(OngoingTopicReassignment(name=key[0], partitions=[ongoing]))
        return ListPartitionReassignmentsResponse(topics=topics)

    def _elect(self, request: ElectLeadersRequest, _version: int) -> ElectLeadersResponse:
        wanted = list(self.partitions)
        if request.topic_partitions is not None:
            wanted = [
                (topic.topic, index) for topic in request.topic_partitions for index in topic.partitions
            ]
        results = []
        for key in wanted:
            preferred = self.partitions[key][0]
            code = 0
            if self.leaders[key] == preferred or (request.election_type and self.leaders[key] >= 0):
                code = ErrorCode.ELECTION_NOT_NEEDED
            elif preferred in self.down:
                code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            else:
                self.leaders[key] = preferred
                self.history.append(f"elect {key[0]}-{key[1]}")
            result = PartitionResult(partition_id=key[1], error_code=code)
            results.append(ReplicaElectionResult(topic=key[0], partition_result=[result]))
        return ElectLeadersResponse(replica_election_results=results)

    def _alter(
        self, request: IncrementalAlterConfigsRequest, _version: int
    ) -> IncrementalAlterConfigsResponse:
        responses = []
        for resource in request.resources:
            settings = self.settings.setdefault((resource.resource_type, resource.resource_name), {})
            for config in resource.configs:
                if config.config_operation == 1:
                    settings.pop(config.name, None)
                else:
                    settings[config.name] = config.value or ""
            word = "throttle" if settings else "unthrottle"
            self.history.append(f"{word} {resource.resource_name}")
            responses.append(
                AlterConfigsResourceResponse(
                    resource_type=resource.resource_type, resource_name=resource.resource_name
                )
            )
        return IncrementalAlterConfigsResponse(responses=responses)
