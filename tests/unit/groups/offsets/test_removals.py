from __future__ import annotations

from uuid import UUID

import pytest

from headrace.coordinators.decision import Decision
from headrace.core.errors import GroupNotFound, NonEmptyGroup
from headrace.groups.offsets import removals
from headrace.groups.offsets.removals import RemovedTopicName
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.primitives import ZERO_UUID
from tests.unit.groups.offsets.logged_offsets import NOW, LoggedOffsets, StubGroup, commit_request
from tests.unit.groups.offsets.state import state_of

OLD, NEW = UUID(int=1), UUID(int=2)


@pytest.fixture
def logged() -> LoggedOffsets:
    return LoggedOffsets()


def delete(logged: LoggedOffsets, group_id: str, *asked: tuple[str, int]) -> list[tuple[str, int, int]]:
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for topic, partition in asked:
        into = topics.setdefault(topic, OffsetDeleteRequestTopic(name=topic))
        into.partitions.append(OffsetDeleteRequestPartition(partition_index=partition))
    request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))
    response = logged.write(logged.offsets.delete(request))
    return [(t.name, row.partition_index, row.error_code) for t in response.topics for row in t.partitions]


def test_what_is_deleted_is_gone_and_the_rest_stays(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit("g", "t", 1, 6)
    assert delete(logged, "g", ("t", 0), ("t", 9), ("u", 0)) == [("t", 0, 0), ("t", 9, 0), ("u", 0, 0)]
    assert (logged.offset("g", "t", 0), logged.offset("g", "t", 1)) == (-1, 6)
    assert len(logged.log) == 3, "what was not there needs no tombstone"
    assert state_of(logged.reread()) == state_of(logged.offsets)


def test_pending_offsets_are_deleted_too(logged: LoggedOffsets) -> None:
    logged.commit_in_transaction(1, "g", "t", 0, 5)
    delete(logged, "g", ("t", 0))
    logged.end(1, committed=True)
    assert logged.offset("g", "t", 0) == -1


def test_topics_that_the_group_reads_are_refused(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit("g", "u", 0, 6)
    group = logged.groups.get("g")
    assert isinstance(group, StubGroup)
    group.subscribed = ("t",)
    told = delete(logged, "g", ("t", 0), ("u", 0))
    assert told == [("t", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), ("u", 0, 0)]
    assert (logged.offset("g", "t", 0), logged.offset("g", "u", 0)) == (5, -1)


def test_an_unknown_group_and_one_that_refuses(logged: LoggedOffsets) -> None:
    with pytest.raises(GroupNotFound):
        delete(logged, "g", ("t", 0))
    logged.commit("g", "t", 0, 5)
    group = logged.groups.get("g")
    assert isinstance(group, StubGroup)
    group.refusal = NonEmptyGroup("members")
    with pytest.raises(NonEmptyGroup):
        delete(logged, "g", ("t", 0))


def test_all_offsets_of_a_group_each_once(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit("g", "u", 1, 6)
    logged.commit("h", "t", 0, 7)
    logged.commit_in_transaction(1, "g", "t", 0, 50)
    logged.commit_in_transaction(1, "g", "v", 0, 51)
    logged.commit_in_transaction(2, "g", "v", 0, 52)
    records = logged.offsets.tombstones("g")
    assert len(records) == 3
    logged.write(Decision(records))
    logged.end(1, committed=True)
    logged.end(2, committed=True)
    assert list(state_of(logged.offsets)["committed"]) == ["h"]


def test_offsets_go_with_their_topic(logged: LoggedOffsets) -> None:
    for group_id, topic, topic_id in [
        ("g", "t", OLD),
        ("h", "t", OLD),
        ("h", "u", OLD),
        ("i", "t", ZERO_UUID),
    ]:
        request = commit_request(group_id, [(topic, 0, 5, ""), (topic, 1, 6, "")], topic_id=topic_id)
        logged.write(logged.offsets.commit(request, 10, NOW))
    logged.commit_in_transaction(1, "j", "t", 0, 9)
    logged.write(logged.offsets.on_topics_removed([RemovedTopicName("t", OLD)]))
    logged.pass_time(0)
    logged.end(1, committed=True)
    assert {g: list(t) for g, t in state_of(logged.offsets)["committed"].items()} == {"h": ["u"]}
    assert state_of(logged.reread()) == state_of(logged.offsets)


def test_offsets_of_the_new_topic_of_that_name_stay(logged: LoggedOffsets) -> None:
    logged.write(logged.offsets.commit(commit_request("g", [("t", 0, 5, "")], topic_id=NEW), 10, NOW))
    logged.write(logged.offsets.on_topics_removed([RemovedTopicName("t", OLD)]))
    assert logged.offset("g", "t", 0) == 5
    assert logged.pass_time(0) == 0


def test_many_offsets_of_a_topic_go_in_several_batches(
    logged: LoggedOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removals, "BYTES_AT_ONCE", 4 * removals.weight_of("g", "t"))
    for partition in range(10):
        logged.commit("g", "t", partition, 1)
    decision = logged.offsets.on_topics_removed([RemovedTopicName("t", OLD)])
    assert len(decision.records) == 4
    logged.write(decision)
    assert logged.pass_time(0) == 3, "two more batches, and a look that finds nothing"
    assert state_of(logged.offsets)["committed"] == {}


def test_a_topics_offsets_that_cannot_be_removed_are_not_tried_for_ever(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 1)
    assert logged.offsets.on_topics_removed([RemovedTopicName("t", OLD)]).records
    refused = logged.timers.pop_due()
    assert refused is not None
    assert not refused(int(logged.timers.now_ms)).records
    assert logged.timers.pop_due() is None
