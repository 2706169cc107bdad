"""What each request lists, in one table: when two mentions mean one thing, and how the answer lists it.

Two rules follow from the table. A thing that is mentioned again costs nothing more
(broker/requests/duplicates.py), and a request that lists more than `part` things is carried out in parts
(broker/requests/request_parts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any, Final, NamedTuple

from headrace.protocol.api_keys import ApiKey


def itself(item: Any) -> Hashable:
    """Of a list of names or numbers."""
    key: Hashable = item
    return key


class Listed(NamedTuple):
    """One list of a request, and what tells its items apart."""

    field: str
    key: Callable[[Any], Hashable] = itself
    empty_asks_for_all: bool = False
    """As null does, which may stand in place of any list within another."""


class Shape(NamedTuple):
    lists: tuple[Listed, ...] = ()
    """From the outermost to the innermost: topics, and the partitions of each."""
    answers: tuple[str, ...] = ()
    """The lists of the answer, in the same way."""
    part: int = 0
    """So many of the innermost items are dealt with in one go. 0: all, because they take effect together."""
    refuses_duplicates: bool = False
    """The handler gets to see that something is mentioned twice, never that it is a thousand times."""


_NAME: Final = attrgetter("name")
_TOPIC: Final = attrgetter("topic")
_INDEX: Final = attrgetter("partition_index")
_NAME_AND_ID: Final = attrgetter("name", "topic_id")
_RESOURCE: Final = attrgetter("resource_type", "resource_name")
_PRINCIPAL: Final = attrgetter("principal_type", "principal_name")
_TOPICS: Final = Listed("topics", _NAME)
_PARTITIONS: Final = Listed("partitions", _INDEX)
_INDEXES: Final = Listed("partition_indexes")
_BY_PARTITION: Final = ("topics", "partitions")


def _entity(entry: Any) -> Hashable:
    """Of a client quota."""
    return frozenset((part.entity_type, part.entity_name) for part in entry.entity)


_ALL: Final = 1 << 8
"""More than any version."""

_SHAPES: Final[dict[ApiKey, tuple[tuple[int, Shape], ...]]] = {
    # API: the shape up to a version, and the next one
    ApiKey.LIST_OFFSETS: ((_ALL, Shape((_TOPICS, _PARTITIONS), _BY_PARTITION, 20, refuses_duplicates=True)),),
    ApiKey.METADATA: ((_ALL, Shape((Listed("topics", _NAME_AND_ID),), _BY_PARTITION, 50)),),
    ApiKey.OFFSET_COMMIT: ((_ALL, Shape((Listed("topics", _NAME_AND_ID), _PARTITIONS), _BY_PARTITION, 200)),),
    ApiKey.OFFSET_FETCH: (
        (8, Shape((_TOPICS, _INDEXES), _BY_PARTITION, 500)),
        (
            _ALL,
            Shape(
                (Listed("groups", attrgetter("group_id")), Listed("topics", _NAME_AND_ID), _INDEXES),
                ("groups", "topics", "partitions"),
                500,
            ),
        ),
    ),
    ApiKey.FIND_COORDINATOR: (
        (4, Shape()),
        (_ALL, Shape((Listed("coordinator_keys"),), ("coordinators",), 100)),
    ),
    ApiKey.JOIN_GROUP: ((_ALL, Shape((Listed("protocols", _NAME),), ("members",))),),
    ApiKey.LEAVE_GROUP: (
        (3, Shape()),
        (_ALL, Shape((Listed("members", attrgetter("member_id", "group_instance_id")),), ("members",), 50)),
    ),
    ApiKey.DESCRIBE_GROUPS: ((_ALL, Shape((Listed("groups"),), ("groups", "members"), 20)),),
    ApiKey.LIST_GROUPS: ((_ALL, Shape((Listed("states_filter"),), ("groups",))),),
    ApiKey.CREATE_TOPICS: ((_ALL, Shape((_TOPICS,), ("topics", "configs"), 100, refuses_duplicates=True)),),
    ApiKey.DELETE_TOPICS: (
        (6, Shape((Listed("topic_names"),), ("responses",), 200, refuses_duplicates=True)),
        (_ALL, Shape((Listed("topics", _NAME_AND_ID),), ("responses",), 200, refuses_duplicates=True)),
    ),
    ApiKey.DELETE_RECORDS: ((_ALL, Shape((_TOPICS, _PARTITIONS), _BY_PARTITION, 5_000)),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        (
            _ALL,
            Shape(
                (Listed("topics", _TOPIC), Listed("partitions", attrgetter("partition"))), _BY_PARTITION, 200
            ),
        ),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        (
            4,
            Shape(
                (Listed("v3_and_below_topics", _NAME), Listed("partitions")),
                ("results_by_topic_v3_and_below", "results_by_partition"),
            ),
        ),
        (
            _ALL,
            Shape(
                (Listed("transactions", attrgetter("transactional_id")), _TOPICS, Listed("partitions")),
                ("results_by_transaction", "topic_results", "results_by_partition"),
            ),
        ),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        (
            _ALL,
            Shape(
                (Listed("markers", attrgetter("producer_id", "producer_epoch")), _TOPICS, _INDEXES),
                ("markers", "topics", "partitions"),
                10,
            ),
        ),
    ),
    ApiKey.TXN_OFFSET_COMMIT: ((_ALL, Shape((_TOPICS, _PARTITIONS), _BY_PARTITION, 200)),),
    ApiKey.DESCRIBE_CONFIGS: (
        (
            _ALL,
            Shape(
                (
                    Listed("resources", _RESOURCE),
                    Listed("configuration_keys", empty_asks_for_all=True),
                ),
                ("results", "configs"),
                40,
            ),
        ),
    ),
    ApiKey.ALTER_CONFIGS: (
        (_ALL, Shape((Listed("resources", _RESOURCE),), ("responses",), 50, refuses_duplicates=True)),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (
        (_ALL, Shape((Listed("resources", _RESOURCE),), ("responses",), 50, refuses_duplicates=True)),
    ),
    ApiKey.DESCRIBE_LOG_DIRS: (
        (_ALL, Shape((Listed("topics", _TOPIC), Listed("partitions")), ("results", "topics", "partitions"))),
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        (
            _ALL,
            Shape(
                (Listed("dirs", attrgetter("path")), _TOPICS, Listed("partitions")),
                ("results", "partitions"),
                200,
            ),
        ),
    ),
    ApiKey.LIST_CONFIG_RESOURCES: ((_ALL, Shape((Listed("resource_types"),), ("config_resources",))),),
    ApiKey.UPDATE_FEATURES: (
        (_ALL, Shape((Listed("feature_updates", attrgetter("feature")),), ("results",))),
    ),
    ApiKey.CREATE_PARTITIONS: ((_ALL, Shape((_TOPICS,), ("results",), 50, refuses_duplicates=True)),),
    ApiKey.DELETE_GROUPS: ((_ALL, Shape((Listed("groups_names"),), ("results",), 50)),),
    ApiKey.ELECT_LEADERS: (
        (
            _ALL,
            Shape(
                (Listed("topic_partitions", _TOPIC), Listed("partitions")),
                ("replica_election_results", "partition_result"),
                200,
            ),
        ),
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        (_ALL, Shape((_TOPICS, _PARTITIONS), ("responses", "partitions"), 200)),
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: ((_ALL, Shape((_TOPICS, _INDEXES), _BY_PARTITION, 200)),),
    ApiKey.OFFSET_DELETE: ((_ALL, Shape((_TOPICS, _PARTITIONS), _BY_PARTITION, 200)),),
    ApiKey.DESCRIBE_PRODUCERS: (
        (_ALL, Shape((_TOPICS, _INDEXES), ("topics", "partitions", "active_producers"), 20)),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        (_ALL, Shape((Listed("transactional_ids"),), ("transaction_states",), 50)),
    ),
    ApiKey.LIST_TRANSACTIONS: ((_ALL, Shape((Listed("producer_id_filters"),), ("transaction_states",))),),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ((_ALL, Shape((Listed("subscribed_topic_names"),))),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ((_ALL, Shape((Listed("group_ids"),), ("groups", "members"), 20)),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: ((_ALL, Shape((_TOPICS,), _BY_PARTITION)),),
    # Each mention has an answer in its place, or means something only beside the others: these handlers pause
    # by themselves (broker/requests/slices.py).
    ApiKey.DESCRIBE_ACLS: ((_ALL, Shape((), ("resources", "acls"))),),
    ApiKey.CREATE_ACLS: ((_ALL, Shape((), ("results",))),),
    ApiKey.DELETE_ACLS: ((_ALL, Shape((), ("filter_results", "matching_acls"))),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: ((_ALL, Shape((), ("results",))),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (
        (_ALL, Shape((Listed("users", _NAME),), ("results",), 500, refuses_duplicates=True)),
    ),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (
        (
            _ALL,
            Shape((Listed("components", attrgetter("entity_type")),), ("entries",), refuses_duplicates=True),
        ),
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: (
        (_ALL, Shape((Listed("entries", _entity),), ("entries",), 100, refuses_duplicates=True)),
    ),
    ApiKey.CREATE_DELEGATION_TOKEN: ((_ALL, Shape((Listed("renewers", _PRINCIPAL),))),),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: ((_ALL, Shape((Listed("owners", _PRINCIPAL),), ("tokens",))),),
}

NO_SHAPE: Final = Shape()


def shape_of(key: int, version: int) -> Shape:
    for below, shape in _SHAPES.get(ApiKey(key), ()):
        if version < below:
            return shape
    return NO_SHAPE


SHAPES: Final[dict[int, Shape]] = {
    int(key) << 8 | version: shape_of(key, version)
    for key in _SHAPES
    for version in range(24)
    if shape_of(key, version) not in (NO_SHAPE, Shape())
}
"""By API key and version in one number. A request that is not here lists nothing, and its answer is short."""
