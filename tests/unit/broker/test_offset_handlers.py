"""OffsetCommit and OffsetFetch: which topics exist, what each version can say, how refusals are told."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.broker.handlers import offset_fetch
from headrace.core.errors import (
    CoordinatorLoading,
    CoordinatorNotAvailable,
    HeadraceError,
    MessageTooLarge,
    NotCoordinator,
    NotLeader,
    UnknownMember,
)
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_commit_request import OffsetCommitRequest
from headrace.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponse
from tests.unit.broker.offset_server import NOBODYS, ORDERS, PAYMENTS, Server
from tests.unit.groups.offsets.logged_offsets import commit_request


@pytest.fixture
def server() -> Server:
    return Server()


# --- OffsetCommit -----------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2, 10))
def test_commit_and_fetch_by_name_in_every_version(server: Server, version: int) -> None:
    told = server.commit(commit_request("g", [("orders", 1, 42, "note")]), version)
    assert told == [("orders", 1, 0)]
    row = server.groups.logged.row("g", "orders", 1)
    assert (row.committed_offset, row.metadata) == (42, "note")
    stored = server.groups.logged.offsets.table.get("g", "orders", 1)
    assert stored is not None
    assert stored.topic_id == ORDERS, "noted whatever the version, so that a new topic does not inherit it"


def test_what_does_not_exist_is_refused_and_the_rest_is_committed(server: Server) -> None:
    rows = [("orders", 0, 1, ""), ("orders", 2, 2, ""), ("nothing", 0, 3, ""), ("orders", -1, 4, "")]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    told = server.commit(commit_request("g", [*rows]), 9)
    assert told == [
        ("orders", 2, unknown),
        ("orders", -1, unknown),
        ("orders", 0, 0),
        ("nothing", 0, unknown),
    ]
    assert server.groups.logged.offset("g", "orders", 0) == 1


def test_nobody_is_asked_if_nothing_exists(server: Server) -> None:
    server.groups.refusal = NotCoordinator("elsewhere")
    told = server.commit(commit_request("g", [("nothing", 0, 3, "")]), 9)
    assert told == [("nothing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert server.commit(OffsetCommitRequest(group_id="g"), 9) == []
    assert server.groups.asked == []


def test_commit_by_id(server: Server) -> None:
    request = commit_request("g", [("a", 0, 5, "")], topic_id=PAYMENTS)
    request.topics += commit_request("g", [("b", 0, 6, "")], topic_id=NOBODYS).topics
    request.topics += commit_request("g", [("c", 3, 6, "")], topic_id=ORDERS).topics
    told = server.commit(request, 10)
    assert told == [
        (NOBODYS, 0, ErrorCode.UNKNOWN_TOPIC_ID),
        (ORDERS, 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (PAYMENTS, 0, 0),
    ]
    assert server.groups.logged.offset("g", "payments", 0) == 5


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (NotCoordinator("x"), ErrorCode.NOT_COORDINATOR),
        (CoordinatorLoading("x"), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (CoordinatorNotAvailable("x"), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (UnknownMember("x"), ErrorCode.UNKNOWN_MEMBER_ID),
        (NotLeader("x"), ErrorCode.NOT_COORDINATOR),
        (MessageTooLarge("x"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_refusal_is_told_for_every_partition(server: Server, refusal: HeadraceError, code: int) -> None:
    server.groups.refusal = refusal
    told = server.commit(commit_request("g", [("orders", 0, 1, ""), ("nothing", 0, 1, "")]), 9)
    assert told == [("nothing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("orders", 0, code)]


def test_a_group_without_a_name_may_commit_and_fetch(server: Server) -> None:
    assert server.commit(commit_request("", [("orders", 0, 9, "")]), 9) == [("orders", 0, 0)]
    assert server.groups.logged.offset("", "orders", 0) == 9


# --- OffsetFetch ------------------------------------------------------------------------------


def rows_of(topics: Any) -> list[tuple[str, int, int, int]]:
    return [
        (topic.name, row.partition_index, row.committed_offset, row.error_code)
        for topic in topics
        for row in topic.partitions
    ]


def fetch_one(
    server: Server, version: int, topics: list[tuple[str, list[int]]] | None
) -> OffsetFetchResponse:
    asked = None
    if topics is not None:
        asked = [OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in topics]
    answer = server.serve(offset_fetch, OffsetFetchRequest(group_id="g", topics=asked), version)
    assert isinstance(answer, OffsetFetchResponse)
    return answer


@pytest.mark.parametrize("version", range(1, 8))
def test_fetch_of_one_group_in_every_version(server: Server, version: int) -> None:
    server.groups.logged.commit("g", "orders", 1, 42)
    answer = fetch_one(server, version, [("orders", [0, 1]), ("gone", [0])])
    assert rows_of(answer.topics) == [("orders", 0, -1, 0), ("orders", 1, 42, 0), ("gone", 0, -1, 0)]
    assert answer.error_code == 0
    assert server.groups.asked == [("g", False)], "a fetch writes nothing"


@pytest.mark.parametrize("version", range(2, 8))
def test_fetch_of_all_partitions(server: Server, version: int) -> None:
    server.groups.logged.commit("g", "orders", 1, 42)
    server.groups.logged.commit("g", "gone", 0, 7)
    assert rows_of(fetch_one(server, version, None).topics) == [("orders", 1, 42, 0), ("gone", 0, 7, 0)]


def test_an_error_of_the_group_is_told_where_the_version_has_a_place(server: Server) -> None:
    server.groups.refusal = CoordinatorLoading("x")
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    old = fetch_one(server, 1, [("orders", [0, 1])])
    assert rows_of(old.topics) == [("orders", 0, -1, loading), ("orders", 1, -1, loading)]
    newer = fetch_one(server, 2, [("orders", [0, 1])])
    assert (newer.topics, newer.error_code) == ([], loading)
    server.groups.refusal = CoordinatorNotAvailable("late")
    assert fetch_one(server, 7, None).error_code == ErrorCode.NOT_COORDINATOR


def fetch_several(server: Server, version: int, *groups: OffsetFetchRequestGroup) -> OffsetFetchResponse:
    request = OffsetFetchRequest(groups=list(groups), require_stable=True)
    answer = server.serve(offset_fetch, request, version)
    assert isinstance(answer, OffsetFetchResponse)
    return answer


@pytest.mark.parametrize("version", [8, 9])
def test_fetch_of_several_groups(server: Server, version: int) -> None:
    server.groups.logged.commit("g", "orders", 0, 1)
    server.groups.logged.commit("h", "orders", 0, 2)
    server.groups.logged.commit_in_transaction(5, "h", "orders", 1, 3)
    wanted = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0, 1])]
    answer = fetch_several(
        server,
        version,
        OffsetFetchRequestGroup(group_id="h", topics=wanted),
        OffsetFetchRequestGroup(group_id="g", topics=None),
        OffsetFetchRequestGroup(group_id="nobody", topics=None),
    )
    told = {group.group_id: rows_of(group.topics) for group in answer.groups}
    assert list(told) == ["h", "g", "nobody"]
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert told["h"] == [("orders", 0, 2, 0), ("orders", 1, -1, unstable)]
    assert told["g"] == [("orders", 0, 1, 0)]
    assert told["nobody"] == []
    assert fetch_several(server, version).groups == []


def test_fetch_by_id(server: Server) -> None:
    server.groups.logged.commit("g", "orders", 0, 1)
    server.groups.logged.commit("g", "gone", 0, 2)
    answer = fetch_several(
        server,
        10,
        OffsetFetchRequestGroup(
            group_id="g",
            topics=[
                OffsetFetchRequestTopics(topic_id=NOBODYS, partition_indexes=[4]),
                OffsetFetchRequestTopics(topic_id=ORDERS, partition_indexes=[0]),
            ],
        ),
        OffsetFetchRequestGroup(group_id="g", topics=None),
    )
    some, everything = [
        [
            (topic.topic_id, row.partition_index, row.committed_offset, row.error_code)
            for topic in group.topics
            for row in topic.partitions
        ]
        for group in answer.groups
    ]
    assert some == [(ORDERS, 0, 1, 0), (NOBODYS, 4, -1, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert everything == [(ORDERS, 0, 1, 0)], "a topic that is gone has no id to be told by"


def test_one_group_that_is_refused_leaves_the_others_alone(server: Server) -> None:
    server.groups.refusal = NotCoordinator("x")
    answer = fetch_several(server, 9, *(OffsetFetchRequestGroup(group_id=each, topics=None) for each in "ab"))
    told = [(group.group_id, group.error_code, group.topics) for group in answer.groups]
    assert told == [(each, ErrorCode.NOT_COORDINATOR, []) for each in "ab"]
