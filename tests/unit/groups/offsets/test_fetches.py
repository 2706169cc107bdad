from __future__ import annotations

from uuid import UUID

import pytest

from headrace.core.errors import GroupNotFound, StaleMemberEpoch
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from headrace.protocol.messages.offset_fetch_response import OffsetFetchResponseGroup
from headrace.protocol.primitives import ZERO_UUID
from tests.unit.groups.offsets.logged_offsets import NOW, LoggedOffsets, StubGroup, commit_request

OLD, NEW = UUID(int=1), UUID(int=2)


@pytest.fixture
def logged() -> LoggedOffsets:
    return LoggedOffsets()


def fetch_all(
    logged: LoggedOffsets, group_id: str, *, require_stable: bool = False
) -> dict[str, dict[int, int]]:
    asked = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    response = logged.write(logged.offsets.fetch(asked, require_stable=require_stable))
    assert isinstance(response, OffsetFetchResponseGroup)
    assert response.group_id == group_id
    return {
        topic.name: {row.partition_index: row.error_code or row.committed_offset for row in topic.partitions}
        for topic in response.topics
    }


def test_what_nobody_committed_is_minus_one_and_no_error(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    for group_id, topic, partition in [("g", "t", 1), ("g", "u", 0), ("other", "t", 0)]:
        row = logged.row(group_id, topic, partition)
        assert (row.committed_offset, row.committed_leader_epoch) == (-1, -1)
        assert (row.metadata, row.error_code) == ("", 0)


def test_all_offsets_of_a_group_and_of_no_other(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit("g", "t", 2, 6)
    logged.commit("g", "u", 1, 7)
    logged.commit("h", "t", 1, 8)
    assert fetch_all(logged, "g") == {"t": {0: 5, 2: 6}, "u": {1: 7}}
    assert fetch_all(logged, "nobody") == {}


def test_a_group_that_is_gone_has_no_offsets(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    group = logged.groups.get("g")
    assert isinstance(group, StubGroup)
    group.refusal = GroupNotFound("dead")
    assert logged.offset("g", "t", 0) == -1
    assert fetch_all(logged, "g") == {}


def test_a_member_that_the_group_refuses_is_told_so(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    group = logged.groups.get("g")
    assert isinstance(group, StubGroup)
    group.refusal = StaleMemberEpoch("old")
    with pytest.raises(StaleMemberEpoch):
        logged.row("g", "t", 0)
    with pytest.raises(StaleMemberEpoch):
        fetch_all(logged, "g")


def test_pending_offsets_are_unstable_only_for_those_who_ask(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit("g", "t", 1, 6)
    logged.commit_in_transaction(9, "g", "t", 0, 50)
    logged.commit_in_transaction(9, "g", "new", 0, 1)
    assert logged.offset("g", "t", 0) == 5
    unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
    row = logged.row("g", "t", 0, require_stable=True)
    assert (row.error_code, row.committed_offset, row.metadata) == (unstable, -1, "")
    assert logged.row("g", "new", 0, require_stable=True).error_code == unstable
    assert logged.row("g", "t", 1, require_stable=True).committed_offset == 6
    assert fetch_all(logged, "g") == {"t": {0: 5, 1: 6}}
    assert fetch_all(logged, "g", require_stable=True) == {"t": {0: unstable, 1: 6}}
    logged.end(9, committed=True)
    assert logged.row("g", "t", 0, require_stable=True).committed_offset == 50


@pytest.mark.parametrize(
    ("stored", "asked", "seen"),
    [(OLD, OLD, 5), (OLD, NEW, -1), (OLD, ZERO_UUID, 5), (ZERO_UUID, NEW, 5), (ZERO_UUID, ZERO_UUID, 5)],
)
def test_offsets_of_a_topic_that_was_made_again_are_not_told(
    logged: LoggedOffsets, stored: UUID, asked: UUID, seen: int
) -> None:
    logged.write(logged.offsets.commit(commit_request("g", [("t", 0, 5, "")], topic_id=stored), 10, NOW))
    topic = OffsetFetchRequestTopics(name="t", topic_id=asked, partition_indexes=[0])
    request = OffsetFetchRequestGroup(group_id="g", topics=[topic])
    response = logged.write(logged.offsets.fetch(request, require_stable=False))
    assert response.topics[0].topic_id == asked
    assert response.topics[0].partitions[0].committed_offset == seen


def test_by_name_only_the_topic_that_has_it_now_is_meant(logged: LoggedOffsets) -> None:
    logged.write(logged.offsets.commit(commit_request("g", [("t", 0, 5, "")], topic_id=OLD), 10, NOW))
    logged.topics.ids["t"] = OLD
    assert logged.offset("g", "t", 0) == 5
    logged.topics.ids["t"] = NEW
    assert logged.offset("g", "t", 0) == -1
    assert fetch_all(logged, "g") == {"t": {0: -1}}
    del logged.topics.ids["t"]
    assert logged.offset("g", "t", 0) == 5, "metadata that is behind says nothing"


def test_a_fetch_tells_of_state_so_it_waits_for_its_commit(logged: LoggedOffsets) -> None:
    decision = logged.offsets.fetch(OffsetFetchRequestGroup(group_id="g", topics=None), require_stable=False)
    assert decision.reveals
    assert not decision.records
