"""A broker with two of everything, and a client whose rights a test chooses: `open` and `shut`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.broker.authorization.guard import Guard, authorised
from headrace.broker.authorization.needed_rights import Right
from headrace.broker.authorization.table import GUARDS
from headrace.broker.requests.api import Api, Call
from headrace.broker.requests.apis import BY_KEY
from headrace.broker.requests.context import RequestContext
from headrace.broker.requests.dispatcher import ToItself
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from headrace.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.init_producer_id_request import InitProducerIdRequest
from headrace.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.security.acl import CLUSTER_NAME, AclRule, Operation, PatternType, Permission, ResourceType
from headrace.security.acl_index import AclIndex
from headrace.security.principal import Principal
from headrace.security.rights import Authorizer, Mode, Report, Rights
from headrace.testing.cluster import Cluster
from tests.unit.broker.authorization import unwritten_handlers

OPEN, SHUT = "open", "shut"
BOTH = (OPEN, SHUT)
ALICE = Principal("User", "alice")
HOST = "10.0.0.1"
SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


def allow(right: Right, name: str) -> AclRule:
    if right.resource_type == ResourceType.CLUSTER:
        name = CLUSTER_NAME
    elif right.resource_type == ResourceType.USER:
        name = f"User:{name}"
    return AclRule(
        right.resource_type,
        name,
        PatternType.LITERAL,
        "User:alice",
        "*",
        right.operation,
        Permission.ALLOW,
    )


def on_topic(operation: Operation, *names: str) -> list[AclRule]:
    return [allow(Right(operation, ResourceType.TOPIC), name) for name in names]


def on_group(operation: Operation, *names: str) -> list[AclRule]:
    return [allow(Right(operation, ResourceType.GROUP), name) for name in names]


def on_cluster(operation: Operation) -> list[AclRule]:
    return [allow(Right(operation, ResourceType.CLUSTER), CLUSTER_NAME)]


def _ignore(*_: Any) -> None:
    """Nobody listens."""


def rights_by(rules: Iterable[AclRule], *, mode: Mode = "enforce", on_denial: Report = _ignore) -> Rights:
    authorizer = Authorizer(AclIndex(rules), mode=mode, on_denial=on_denial)
    return authorizer.rights_of("User:alice", HOST)


EVERYTHING = [
    AclRule(each, "*", PatternType.LITERAL, "User:alice", "*", Operation.ALL, Permission.ALLOW)
    for each in ResourceType
    if each not in (ResourceType.UNKNOWN, ResourceType.ANY, ResourceType.CLUSTER)
] + on_cluster(Operation.ALL)


def api_of(key: ApiKey) -> Api:
    return unwritten_handlers.APIS.get(key) or BY_KEY[int(key)]


class Realm:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._itself: Any = ToItself(cluster.broker.runtime.config.bound_listeners[0].name)
        self._settle()

    @property
    def context(self) -> RequestContext:
        return self.cluster.broker.context

    def call(self, version: int, rights: Rights | None) -> Call:
        return Call(version, "test", self._itself, ALICE, HOST, rights)

    def ask(
        self,
        request: Message,
        version: int,
        rights: Rights | None,
        guards: dict[int, Guard] | None = None,
    ) -> Any:
        """As the dispatcher serves it once it is read."""
        api = api_of(ApiKey(request.API_KEY))

        async def serve() -> Message:
            served = authorised(self.context, guards or GUARDS, api, request, self.call(version, rights))
            return served if isinstance(served, Message) else await served

        answer = self.cluster.run(serve())
        answer.to_bytes(version)  # what cannot be said in this version cannot be sent
        return answer

    def create(self, *names: str, partitions: int = 1) -> None:
        wanted = [
            CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names
        ]
        self.ask(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7, None)

    def _settle(self) -> None:
        """Topics, groups with offsets, and transactions in which both topics are."""
        self.create(*BOTH)
        for key_type in (0, 1):
            self.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[*BOTH]), 4, None)
        for name in BOTH:
            topics = [
                OffsetCommitRequestTopic(
                    name=topic, partitions=[OffsetCommitRequestPartition(committed_offset=7)]
                )
                for topic in BOTH
            ]
            self.ask(OffsetCommitRequest(group_id=name, topics=topics), 8, None)
            got = self.ask(
                InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=600_000), 4, None
            )
            added = self.ask(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=name,
                    v3_and_below_producer_id=got.producer_id,
                    v3_and_below_producer_epoch=got.producer_epoch,
                    v3_and_below_topics=[AddPartitionsToTxnTopic(name=each, partitions=[0]) for each in BOTH],
                ),
                3,
                None,
            )
            rows = added.results_by_topic_v3_and_below
            assert [row.results_by_partition[0].partition_error_code for row in rows] == [0, 0]
