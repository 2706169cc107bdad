"""Questions about groups, their offsets, and transactions."""

from __future__ import annotations

from typing import Any

from headrace.protocol.api_keys import ApiKey
from headrace.protocol.message import Message
from headrace.protocol.messages import (
    add_offsets_to_txn_request,
    add_partitions_to_txn_request,
    consumer_group_describe_request,
    consumer_group_heartbeat_request,
    delete_groups_request,
    describe_groups_request,
    describe_transactions_request,
    end_txn_request,
    find_coordinator_request,
    heartbeat_request,
    init_producer_id_request,
    join_group_request,
    leave_group_request,
    list_groups_request,
    list_transactions_request,
    offset_commit_request,
    offset_delete_request,
    offset_fetch_request,
    sync_group_request,
    txn_offset_commit_request,
    write_txn_markers_request,
)
from tests.unit.broker.authorization.questions import (
    Codes,
    G,
    Question,
    T,
    X,
    by_name,
    by_partition,
    of_cluster,
)

NOBODY = 4_000_000
"""A producer id that nobody has."""


def _find(key_type: int) -> Any:
    def make(version: int, *names: str) -> list[Message]:
        if version >= 4:
            keys = [*names]
            return [find_coordinator_request.FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)]
        return [
            find_coordinator_request.FindCoordinatorRequest(key_type=key_type, key=name) for name in names
        ]

    return make


def _found(request: Any, response: Any) -> Codes:
    kind = X if request.key_type else G
    if request.key:
        return {(kind, request.key): response.error_code}
    return by_name(kind, response.coordinators, "key")


def _of_group(request: Any, response: Any) -> Codes:
    return {(G, request.group_id): response.error_code}


def _each(make: Any) -> Any:
    return lambda _version, *names: [make(name) for name in names]


def _commit(_version: int, *names: str) -> list[Message]:
    return [
        offset_commit_request.OffsetCommitRequest(
            group_id=group,
            topics=[
                offset_commit_request.OffsetCommitRequestTopic(
                    name=name, partitions=[offset_commit_request.OffsetCommitRequestPartition()]
                )
                for name in names
            ],
        )
        for group in names
    ]


def _committed(request: Any, response: Any) -> Codes:
    """The topic that is open says what becomes of the group; the open group, what becomes of the topics."""
    codes = by_partition(T, response.topics)
    told = {(G, request.group_id): codes[T, "open"]}
    return codes | told if request.group_id == "open" else told


def _txn_commit(_version: int, *names: str) -> list[Message]:
    topics = [
        txn_offset_commit_request.TxnOffsetCommitRequestTopic(
            name=name, partitions=[txn_offset_commit_request.TxnOffsetCommitRequestPartition()]
        )
        for name in names
    ]
    return [
        txn_offset_commit_request.TxnOffsetCommitRequest(
            transactional_id=name, group_id=group, producer_id=NOBODY, topics=list(topics)
        )
        for name in names
        for group in names
    ]


def _txn_committed(request: Any, response: Any) -> Codes:
    codes = by_partition(T, response.topics)
    told: Codes = {}
    if request.group_id == "open":
        told[X, request.transactional_id] = codes[T, "open"]
    if request.transactional_id == "open":
        told[G, request.group_id] = codes[T, "open"]
    return told | codes if request.group_id == request.transactional_id == "open" else told


def _fetch(version: int, *names: str) -> list[Message]:
    if version >= 8:
        groups = [
            offset_fetch_request.OffsetFetchRequestGroup(
                group_id=group,
                topics=[
                    offset_fetch_request.OffsetFetchRequestTopics(name=name, partition_indexes=[0])
                    for name in names
                ],
            )
            for group in names
        ]
        return [offset_fetch_request.OffsetFetchRequest(groups=groups)]
    topics = [
        offset_fetch_request.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in names
    ]
    return [offset_fetch_request.OffsetFetchRequest(group_id=group, topics=list(topics)) for group in names]


def _fetch_all(version: int, *names: str) -> list[Message]:
    if version >= 8:
        groups = [offset_fetch_request.OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        return [offset_fetch_request.OffsetFetchRequest(groups=groups)]
    return [offset_fetch_request.OffsetFetchRequest(group_id=name, topics=None) for name in names]


def _fetched(request: Any, response: Any) -> Codes:
    if not request.groups:
        codes = by_partition(T, response.topics)
        code = response.error_code or codes.get((T, "open"), 0)  # version 1 tells it of the partitions alone
        return codes | {(G, request.group_id): code}
    codes = by_name(G, response.groups, "group_id")
    for group in response.groups:
        codes |= by_partition(T, group.topics)
    return codes


def _delete_offsets(_version: int, *names: str) -> list[Message]:
    part = offset_delete_request.OffsetDeleteRequestPartition(partition_index=9)
    return [
        offset_delete_request.OffsetDeleteRequest(
            group_id=group,
            topics=[
                offset_delete_request.OffsetDeleteRequestTopic(name=name, partitions=[part]) for name in names
            ],
        )
        for group in names
    ]


def _deleted_offsets(request: Any, response: Any) -> Codes:
    return by_partition(T, response.topics) | {(G, request.group_id): response.error_code}


def _add_partitions(_version: int, *names: str) -> list[Message]:
    return [
        add_partitions_to_txn_request.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=NOBODY,
            v3_and_below_topics=[
                add_partitions_to_txn_request.AddPartitionsToTxnTopic(name=topic, partitions=[0])
                for topic in names
            ],
        )
        for name in names
    ]


def _added(request: Any, response: Any) -> Codes:
    name = request.v3_and_below_transactional_id
    codes = by_partition(
        T,
        response.results_by_topic_v3_and_below,
        rows="results_by_partition",
        code="partition_error_code",
    )
    told = {(X, name): codes[T, "open"]}
    return codes | told if name == "open" else told


def _add_offsets(_version: int, *names: str) -> list[Message]:
    return [
        add_offsets_to_txn_request.AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=NOBODY, group_id=group
        )
        for name in names
        for group in names
    ]


def _added_offsets(request: Any, response: Any) -> Codes:
    codes: Codes = {}
    if request.group_id == "open":
        codes[X, request.transactional_id] = response.error_code
    if request.transactional_id == "open":
        codes[G, request.group_id] = response.error_code
    return codes


def _markers(_version: int, *names: str) -> list[Message]:
    topics = [
        write_txn_markers_request.WritableTxnMarkerTopic(name=name, partition_indexes=[9]) for name in names
    ]
    marker = write_txn_markers_request.WritableTxnMarker(producer_id=NOBODY, topics=topics)
    return [write_txn_markers_request.WriteTxnMarkersRequest(markers=[marker])]


def _described_transactions(_request: Any, response: Any) -> Codes:
    codes = by_name(X, response.transaction_states, "transactional_id")
    for state in response.transaction_states:
        codes |= {(T, each.topic): 0 for each in state.topics}
    return codes


def _described_consumers(_request: Any, response: Any) -> Codes:
    """Each group has a topic of its own name."""
    codes = by_name(G, response.groups, "group_id")
    return codes | by_name(T, response.groups, "group_id")


GROUPS = (
    Question(ApiKey.FIND_COORDINATOR, "of groups", _find(0), _found),
    Question(ApiKey.FIND_COORDINATOR, "of transactional ids", _find(1), _found, versions=range(1, 7)),
    Question(
        ApiKey.JOIN_GROUP,
        "",
        _each(lambda name: join_group_request.JoinGroupRequest(group_id=name, session_timeout_ms=10_000)),
        _of_group,
    ),
    Question(
        ApiKey.SYNC_GROUP,
        "",
        _each(
            lambda name: sync_group_request.SyncGroupRequest(
                group_id=name, protocol_type="consumer", protocol_name="range"
            )
        ),
        _of_group,
    ),
    Question(
        ApiKey.HEARTBEAT, "", _each(lambda name: heartbeat_request.HeartbeatRequest(group_id=name)), _of_group
    ),
    Question(
        ApiKey.LEAVE_GROUP,
        "",
        _each(lambda name: leave_group_request.LeaveGroupRequest(group_id=name)),
        _of_group,
    ),
    Question(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "",
        _each(
            lambda name: consumer_group_heartbeat_request.ConsumerGroupHeartbeatRequest(
                group_id=name, member_id="m", member_epoch=5
            )
        ),
        _of_group,
        "heard-",
    ),
    Question(
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        "by name",
        _each(
            lambda name: consumer_group_heartbeat_request.ConsumerGroupHeartbeatRequest(
                group_id=name, member_id="m", member_epoch=5, subscribed_topic_names=[name]
            )
        ),
        lambda request, made: {(T, request.subscribed_topic_names[0]): made.error_code},
        "heard-",
        also=("",),
    ),
    Question(
        ApiKey.DESCRIBE_GROUPS,
        "",
        lambda _, *names: [describe_groups_request.DescribeGroupsRequest(groups=[*names])],
        lambda _, made: by_name(G, made.groups, "group_id"),
    ),
    *(
        Question(
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            case,
            lambda _, *names: [
                consumer_group_describe_request.ConsumerGroupDescribeRequest(group_ids=[*names])
            ],
            _described_consumers,
            "read-",
            also=("", "assigned topics"),
        )
        for case in ("", "assigned topics")
    ),
    Question(
        ApiKey.LIST_GROUPS,
        "",
        lambda *_: [list_groups_request.ListGroupsRequest()],
        lambda _, made: {(G, group.group_id): 0 for group in made.groups},
    ),
    Question(
        ApiKey.DELETE_GROUPS,
        "",
        lambda _, *names: [delete_groups_request.DeleteGroupsRequest(groups_names=[*names])],
        lambda _, made: by_name(G, made.results, "group_id"),
        "gone-",
    ),
)
OFFSETS = (
    Question(ApiKey.OFFSET_COMMIT, "", _commit, _committed, versions=range(2, 10)),
    Question(ApiKey.OFFSET_FETCH, "", _fetch, _fetched, versions=range(1, 10)),
    Question(ApiKey.OFFSET_FETCH, "all offsets", _fetch_all, _fetched, versions=range(2, 10), also=("",)),
    Question(ApiKey.OFFSET_DELETE, "", _delete_offsets, _deleted_offsets),
    Question(ApiKey.TXN_OFFSET_COMMIT, "", _txn_commit, _txn_committed),
)
TRANSACTIONS = (
    Question(
        ApiKey.INIT_PRODUCER_ID,
        "a transactional id",
        _each(
            lambda name: init_producer_id_request.InitProducerIdRequest(
                transactional_id=name, transaction_timeout_ms=60_000
            )
        ),
        lambda request, made: {(X, request.transactional_id): made.error_code},
        "fresh-",
    ),
    Question(
        ApiKey.INIT_PRODUCER_ID,
        "no transactional id",
        lambda *_: [init_producer_id_request.InitProducerIdRequest(transactional_id=None)],
        lambda _, made: of_cluster(made.error_code),
    ),
    Question(ApiKey.ADD_PARTITIONS_TO_TXN, "versions 0-3", _add_partitions, _added, versions=range(4)),
    Question(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        "from version 4",
        lambda *_: [add_partitions_to_txn_request.AddPartitionsToTxnRequest()],
        lambda _, made: of_cluster(made.error_code),
        versions=range(4, 6),
    ),
    Question(ApiKey.ADD_OFFSETS_TO_TXN, "", _add_offsets, _added_offsets),
    Question(
        ApiKey.END_TXN,
        "",
        _each(lambda name: end_txn_request.EndTxnRequest(transactional_id=name, producer_id=NOBODY)),
        lambda request, made: {(X, request.transactional_id): made.error_code},
    ),
    Question(
        ApiKey.WRITE_TXN_MARKERS,
        "",
        _markers,
        lambda _, made: of_cluster(made.markers[0].topics[0].partitions[0].error_code),
    ),
    *(
        Question(
            ApiKey.DESCRIBE_TRANSACTIONS,
            case,
            lambda _, *names: [
                describe_transactions_request.DescribeTransactionsRequest(transactional_ids=[*names])
            ],
            _described_transactions,
            also=("", "topics of a transaction"),
        )
        for case in ("", "topics of a transaction")
    ),
    Question(
        ApiKey.LIST_TRANSACTIONS,
        "",
        lambda *_: [list_transactions_request.ListTransactionsRequest()],
        lambda _, made: {(X, each.transactional_id): 0 for each in made.transaction_states},
    ),
)
