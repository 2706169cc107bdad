"""Which right each API needs, and what is answered without it, as a list to be read and to be tested by.

The guards do not read it: tests walk it and show that the guards do what it says. Produce and Fetch are not
in it; they ask for rights where their frames are read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.broker.authorization.refusals import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    TOPIC_DENIED,
    TRANSACTIONAL_ID_DENIED,
)
from headrace.protocol.api_keys import ApiKey
from headrace.protocol.error_codes import ErrorCode
from headrace.security.acl import Operation, ResourceType


class Right(NamedTuple):
    operation: Operation
    resource_type: ResourceType


class Need(NamedTuple):
    api: ApiKey
    rights: tuple[Right, ...]
    """One of them is enough."""
    denied: ErrorCode | None
    """None: what is denied is left out of the answer."""
    case: str = ""
    """When it is needed, if not always."""


def _on(resource_type: ResourceType, *operations: Operation) -> tuple[Right, ...]:
    return tuple(Right(operation, resource_type) for operation in operations)


_C, _G, _T = ResourceType.CLUSTER, ResourceType.GROUP, ResourceType.TOPIC
_X = ResourceType.TRANSACTIONAL_ID
_READ, _WRITE, _DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
_ALTER, _CREATE, _DELETE = Operation.ALTER, Operation.CREATE, Operation.DELETE
_DESCRIBE_CONFIGS, _ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
_BROKERS: Final = _on(_C, Operation.CLUSTER_ACTION)

NEEDS: Final = (
    # topics
    Need(ApiKey.METADATA, _on(_T, _DESCRIBE), TOPIC_DENIED),
    Need(ApiKey.METADATA, _on(_T, _DESCRIBE), None, "all topics"),
    Need(ApiKey.METADATA, (*_on(_C, _CREATE), *_on(_T, _CREATE)), TOPIC_DENIED, "creating"),
    Need(ApiKey.DESCRIBE_TOPIC_PARTITIONS, _on(_T, _DESCRIBE), TOPIC_DENIED),
    Need(ApiKey.DESCRIBE_TOPIC_PARTITIONS, _on(_T, _DESCRIBE), None, "all topics"),
    Need(ApiKey.CREATE_TOPICS, (*_on(_C, _CREATE), *_on(_T, _CREATE)), TOPIC_DENIED),
    Need(ApiKey.CREATE_TOPICS, _on(_T, _DESCRIBE_CONFIGS), TOPIC_DENIED, "configs in the answer"),
    Need(ApiKey.DELETE_TOPICS, (*_on(_C, _DELETE), *_on(_T, _DELETE)), TOPIC_DENIED),
    Need(ApiKey.CREATE_PARTITIONS, _on(_T, _ALTER), TOPIC_DENIED),
    Need(ApiKey.DELETE_RECORDS, _on(_T, _DELETE), TOPIC_DENIED),
    Need(ApiKey.LIST_OFFSETS, _on(_T, _DESCRIBE), TOPIC_DENIED),
    Need(ApiKey.OFFSET_FOR_LEADER_EPOCH, (*_BROKERS, *_on(_T, _DESCRIBE)), TOPIC_DENIED),
    Need(ApiKey.DESCRIBE_PRODUCERS, _on(_T, _READ), TOPIC_DENIED),
    # configs
    Need(ApiKey.DESCRIBE_CONFIGS, _on(_T, _DESCRIBE_CONFIGS), TOPIC_DENIED, "of topics"),
    Need(ApiKey.DESCRIBE_CONFIGS, _on(_G, _DESCRIBE_CONFIGS), GROUP_DENIED, "of groups"),
    Need(ApiKey.DESCRIBE_CONFIGS, _on(_C, _DESCRIBE_CONFIGS), CLUSTER_DENIED, "of brokers"),
    Need(ApiKey.ALTER_CONFIGS, _on(_T, _ALTER_CONFIGS), TOPIC_DENIED, "of topics"),
    Need(ApiKey.ALTER_CONFIGS, _on(_G, _ALTER_CONFIGS), GROUP_DENIED, "of groups"),
    Need(ApiKey.ALTER_CONFIGS, _on(_C, _ALTER_CONFIGS), CLUSTER_DENIED, "of brokers"),
    Need(ApiKey.INCREMENTAL_ALTER_CONFIGS, _on(_T, _ALTER_CONFIGS), TOPIC_DENIED, "of topics"),
    Need(ApiKey.INCREMENTAL_ALTER_CONFIGS, _on(_G, _ALTER_CONFIGS), GROUP_DENIED, "of groups"),
    Need(ApiKey.INCREMENTAL_ALTER_CONFIGS, _on(_C, _ALTER_CONFIGS), CLUSTER_DENIED, "of brokers"),
    Need(ApiKey.LIST_CONFIG_RESOURCES, _on(_C, _DESCRIBE_CONFIGS), CLUSTER_DENIED),
    # groups
    Need(ApiKey.FIND_COORDINATOR, _on(_G, _DESCRIBE), GROUP_DENIED, "of groups"),
    Need(ApiKey.FIND_COORDINATOR, _on(_X, _DESCRIBE), TRANSACTIONAL_ID_DENIED, "of transactional ids"),
    Need(ApiKey.JOIN_GROUP, _on(_G, _READ), GROUP_DENIED),
    Need(ApiKey.SYNC_GROUP, _on(_G, _READ), GROUP_DENIED),
    Need(ApiKey.HEARTBEAT, _on(_G, _READ), GROUP_DENIED),
    Need(ApiKey.LEAVE_GROUP, _on(_G, _READ), GROUP_DENIED),
    Need(ApiKey.CONSUMER_GROUP_HEARTBEAT, _on(_G, _READ), GROUP_DENIED),
    Need(ApiKey.CONSUMER_GROUP_HEARTBEAT, _on(_T, _DESCRIBE), TOPIC_DENIED, "by name"),
    Need(ApiKey.CONSUMER_GROUP_HEARTBEAT, _on(_T, _DESCRIBE), None, "by pattern"),
    Need(ApiKey.DESCRIBE_GROUPS, _on(_G, _DESCRIBE), GROUP_DENIED),
    Need(ApiKey.CONSUMER_GROUP_DESCRIBE, _on(_G, _DESCRIBE), GROUP_DENIED),
    Need(ApiKey.CONSUMER_GROUP_DESCRIBE, _on(_T, _DESCRIBE), TOPIC_DENIED, "assigned topics"),
    Need(ApiKey.LIST_GROUPS, (*_on(_C, _DESCRIBE), *_on(_G, _DESCRIBE)), None),
    Need(ApiKey.DELETE_GROUPS, _on(_G, _DELETE), GROUP_DENIED),
    # offsets
    Need(ApiKey.OFFSET_COMMIT, _on(_G, _READ), GROUP_DENIED),
    Need(ApiKey.OFFSET_COMMIT, _on(_T, _READ), TOPIC_DENIED),
    Need(ApiKey.OFFSET_FETCH, _on(_G, _DESCRIBE), GROUP_DENIED),
    Need(ApiKey.OFFSET_FETCH, _on(_T, _DESCRIBE), TOPIC_DENIED),
    Need(ApiKey.OFFSET_FETCH, _on(_T, _DESCRIBE), None, "all offsets"),
    Need(ApiKey.OFFSET_DELETE, _on(_G, _DELETE), GROUP_DENIED),
    Need(ApiKey.OFFSET_DELETE, _on(_T, _READ), TOPIC_DENIED),
    # transactions
    Need(ApiKey.TXN_OFFSET_COMMIT, _on(_X, _WRITE), TRANSACTIONAL_ID_DENIED),
    Need(ApiKey.TXN_OFFSET_COMMIT, _on(_G, _READ), GROUP_DENIED),
    Need(ApiKey.TXN_OFFSET_COMMIT, _on(_T, _READ), TOPIC_DENIED),
    Need(ApiKey.INIT_PRODUCER_ID, _on(_X, _WRITE), TRANSACTIONAL_ID_DENIED, "a transactional id"),
    Need(
        ApiKey.INIT_PRODUCER_ID,
        _on(_X, Operation.TWO_PHASE_COMMIT),
        TRANSACTIONAL_ID_DENIED,
        "two-phase commit",
    ),
    Need(
        ApiKey.INIT_PRODUCER_ID,
        (*_on(_C, Operation.IDEMPOTENT_WRITE), *_on(_T, _WRITE)),
        CLUSTER_DENIED,
        "no transactional id",
    ),
    Need(ApiKey.ADD_PARTITIONS_TO_TXN, _on(_X, _WRITE), TRANSACTIONAL_ID_DENIED, "versions 0-3"),
    Need(ApiKey.ADD_PARTITIONS_TO_TXN, _on(_T, _WRITE), TOPIC_DENIED, "versions 0-3"),
    Need(ApiKey.ADD_PARTITIONS_TO_TXN, _BROKERS, CLUSTER_DENIED, "from version 4"),
    Need(ApiKey.ADD_OFFSETS_TO_TXN, _on(_X, _WRITE), TRANSACTIONAL_ID_DENIED),
    Need(ApiKey.ADD_OFFSETS_TO_TXN, _on(_G, _READ), GROUP_DENIED),
    Need(ApiKey.END_TXN, _on(_X, _WRITE), TRANSACTIONAL_ID_DENIED),
    Need(ApiKey.WRITE_TXN_MARKERS, (*_on(_C, _ALTER), *_BROKERS), CLUSTER_DENIED),
    Need(ApiKey.DESCRIBE_TRANSACTIONS, _on(_X, _DESCRIBE), TRANSACTIONAL_ID_DENIED),
    Need(ApiKey.DESCRIBE_TRANSACTIONS, _on(_T, _DESCRIBE), None, "topics of a transaction"),
    Need(ApiKey.LIST_TRANSACTIONS, _on(_X, _DESCRIBE), None),
    # the cluster
    Need(ApiKey.DESCRIBE_LOG_DIRS, _on(_C, _DESCRIBE), CLUSTER_DENIED),
    Need(ApiKey.LIST_PARTITION_REASSIGNMENTS, _on(_C, _DESCRIBE), CLUSTER_DENIED),
    Need(ApiKey.ALTER_PARTITION_REASSIGNMENTS, _on(_C, _ALTER), CLUSTER_DENIED),
    Need(ApiKey.ELECT_LEADERS, _on(_C, _ALTER), CLUSTER_DENIED),
    Need(ApiKey.UNREGISTER_BROKER, _on(_C, _ALTER), CLUSTER_DENIED),
    Need(ApiKey.ALTER_REPLICA_LOG_DIRS, _on(_C, _ALTER), CLUSTER_DENIED),
    Need(ApiKey.UPDATE_FEATURES, _on(_C, _ALTER), CLUSTER_DENIED),
    # security itself
    Need(ApiKey.DESCRIBE_ACLS, _on(_C, _DESCRIBE), CLUSTER_DENIED),
    Need(ApiKey.CREATE_ACLS, _on(_C, _ALTER), CLUSTER_DENIED),
    Need(ApiKey.DELETE_ACLS, _on(_C, _ALTER), CLUSTER_DENIED),
    Need(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, _on(_C, _DESCRIBE), CLUSTER_DENIED),
    Need(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, _on(_C, _ALTER), CLUSTER_DENIED),
    Need(ApiKey.DESCRIBE_CLIENT_QUOTAS, _on(_C, _DESCRIBE_CONFIGS), CLUSTER_DENIED),
    Need(ApiKey.ALTER_CLIENT_QUOTAS, _on(_C, _ALTER_CONFIGS), CLUSTER_DENIED),
    Need(
        ApiKey.CREATE_DELEGATION_TOKEN,
        _on(ResourceType.USER, Operation.CREATE_TOKENS),
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        "for another owner",
    ),
    Need(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        (
            *_on(ResourceType.DELEGATION_TOKEN, _DESCRIBE),
            *_on(ResourceType.USER, Operation.DESCRIBE_TOKENS),
        ),
        None,
        "of others",
    ),
    # between brokers: the connection is closed
    Need(ApiKey.ALTER_PARTITION, _BROKERS, CLUSTER_DENIED),
    Need(ApiKey.BROKER_HEARTBEAT, _BROKERS, CLUSTER_DENIED),
    Need(ApiKey.ALLOCATE_PRODUCER_IDS, _BROKERS, CLUSTER_DENIED),
    Need(ApiKey.ASSIGN_REPLICAS_TO_DIRS, _BROKERS, CLUSTER_DENIED),
    Need(ApiKey.ENVELOPE, _BROKERS, CLUSTER_DENIED),
)
NEED_NONE: Final = frozenset(
    (
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    )
)
"""Everybody may ask. What DescribeCluster says of rights is 0 without DESCRIBE on the cluster."""
SERVED_FROM_FRAMES: Final = frozenset((ApiKey.PRODUCE, ApiKey.FETCH))
