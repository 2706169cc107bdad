"""OffsetDelete and TxnOffsetCommit: what does not exist, and what is asked before anything is written."""

from __future__ import annotations

import pytest

from headrace.broker.handlers import offset_delete, txn_offset_commit
from headrace.core.errors import CoordinatorLoading, CoordinatorNotAvailable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.messages.offset_delete_response import OffsetDeleteResponse
from headrace.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from headrace.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from tests.unit.broker.offset_server import Server
from tests.unit.groups.offsets.logged_offsets import transactional_request


@pytest.fixture
def server() -> Server:
    return Server()


# --- OffsetDelete -----------------------------------------------------------------------------


def delete(server: Server, group_id: str, topics: list[tuple[str, list[int]]]) -> OffsetDeleteResponse:
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in wanted]
            )
            for name, wanted in topics
        ],
    )
    answer = server.serve(offset_delete, request, 0)
    assert isinstance(answer, OffsetDeleteResponse)
    return answer


def test_delete(server: Server) -> None:
    server.groups.logged.commit("g", "orders", 0, 1)
    answer = delete(server, "g", [("orders", [0, 5]), ("nothing", [1])])
    told = [
        (topic.name, row.partition_index, row.error_code)
        for topic in answer.topics
        for row in topic.partitions
    ]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told == [("orders", 5, unknown), ("orders", 0, 0), ("nothing", 1, unknown)]
    assert server.groups.logged.offset("g", "orders", 0) == -1


def test_delete_of_a_group_that_is_not_there(server: Server) -> None:
    assert delete(server, "g", [("orders", [0])]).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete(server, "", [("orders", [0])]).error_code == ErrorCode.INVALID_GROUP_ID
    assert delete(server, "g", [("nothing", [0])]).topics == []


# --- TxnOffsetCommit --------------------------------------------------------------------------


def commit_in_transaction(
    server: Server, version: int, request: TxnOffsetCommitRequest | None = None
) -> list[tuple[str, int, int]]:
    request = request or transactional_request("g", [("orders", 0, 5)], 11)
    answer = server.serve(txn_offset_commit, request, version)
    assert isinstance(answer, TxnOffsetCommitResponse)
    return [
        (topic.name, row.partition_index, row.error_code)
        for topic in answer.topics
        for row in topic.partitions
    ]


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_commit_is_verified_or_added_then_written(server: Server, version: int) -> None:
    assert commit_in_transaction(server, version) == [("orders", 0, 0)]
    assert server.verification.asked == [("t", 11, 0, version >= 5, version >= 4)]
    logged = server.groups.logged
    assert logged.offset("g", "orders", 0) == -1
    logged.end(11, committed=True)
    assert logged.offset("g", "orders", 0) == 5


def test_what_is_not_verified_is_not_written(server: Server) -> None:
    server.verification.code = ErrorCode.INVALID_TXN_STATE
    assert commit_in_transaction(server, 3) == [("orders", 0, ErrorCode.INVALID_TXN_STATE)]
    assert server.groups.asked == []


@pytest.mark.parametrize("version", [1, 2])
def test_old_producers_do_not_know_of_loading(server: Server, version: int) -> None:
    loading, not_available = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE
    expected = loading if version >= 2 else not_available
    server.groups.refusal = CoordinatorLoading("x")
    assert commit_in_transaction(server, version) == [("orders", 0, expected)]
    server.groups.refusal = None
    server.verification.code = ErrorCode.NETWORK_EXCEPTION
    assert commit_in_transaction(server, version) == [("orders", 0, expected)]


def test_a_transactional_commit_that_cannot_be_placed(server: Server) -> None:
    nameless = transactional_request("", [("orders", 0, 5)], 11)
    assert commit_in_transaction(server, 3, nameless) == [("orders", 0, ErrorCode.INVALID_GROUP_ID)]
    unknown = transactional_request("g", [("nothing", 0, 5)], 11)
    assert commit_in_transaction(server, 3, unknown) == [("nothing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    server.groups.refusal = CoordinatorNotAvailable("no topic yet")
    assert commit_in_transaction(server, 3) == [("orders", 0, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert server.verification.asked == []
