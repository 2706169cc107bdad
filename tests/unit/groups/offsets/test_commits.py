from __future__ import annotations

from uuid import UUID

import pytest

from headrace.coordinators.decision import Decision
from headrace.core.errors import (
    GroupNotFound,
    IllegalGeneration,
    RebalanceInProgress,
    StaleMemberEpoch,
    UnknownMember,
)
from headrace.core.memory import MemoryShare
from headrace.groups.group import GroupType
from headrace.groups.group_config import GroupConfig
from headrace.groups.offsets.room import OffsetRoom
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.stored.offset_commit_key import OffsetCommitKey
from headrace.protocol.stored.offset_commit_value import OffsetCommitValue
from tests.unit.groups.offsets.logged_offsets import (
    NOW,
    LoggedOffsets,
    StubGroup,
    commit_request,
    transactional_request,
)

TOPIC_ID = UUID(int=7)


@pytest.fixture
def logged() -> LoggedOffsets:
    return LoggedOffsets()


def codes(response: object) -> list[int]:
    return [row.error_code for topic in response.topics for row in topic.partitions]  # type: ignore[attr-defined]  # both kinds of commit answer so


def test_a_commit_is_one_record_in_kafkas_newest_form(logged: LoggedOffsets) -> None:
    request = commit_request("g", [("t", 3, 42, "note")], leader_epoch=5, topic_id=TOPIC_ID)
    decision = logged.offsets.commit(request, 10, NOW)
    [record] = decision.records
    assert record.key == OffsetCommitKey(group="g", topic="t", partition=3)
    assert record.value == OffsetCommitValue(
        offset=42, leader_epoch=5, metadata="note", commit_timestamp=NOW, topic_id=TOPIC_ID
    )
    assert record.value_version == 4


def test_a_retention_of_the_clients_own_needs_the_version_that_can_say_it(logged: LoggedOffsets) -> None:
    request = commit_request("g", [("t", 0, 1, "")], retention_ms=1000)
    [record] = logged.offsets.commit(request, 4, NOW).records
    assert record.value_version == 1
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.expire_timestamp == NOW + 1000


def test_nothing_changes_before_the_record_is_replayed(logged: LoggedOffsets) -> None:
    decision = logged.offsets.commit(commit_request("g", [("t", 0, 1, "")]), 9, NOW)
    assert logged.offset("g", "t", 0) == -1
    assert "g" not in logged.groups
    logged.write(decision)
    assert logged.offset("g", "t", 0) == 1
    assert "g" in logged.groups


def test_every_topic_and_partition_is_answered_in_order(logged: LoggedOffsets) -> None:
    rows = [("b", 1, 10, ""), ("b", 0, 11, ""), ("a", 5, 12, "")]
    response = logged.write(logged.offsets.commit(commit_request("g", list(rows)), 9, NOW))
    told = [(topic.name, row.partition_index) for topic in response.topics for row in topic.partitions]
    assert told == [("b", 1), ("b", 0), ("a", 5)]
    assert codes(response) == [0, 0, 0]
    assert [logged.offset("g", topic, partition) for topic, partition, _, _ in rows] == [10, 11, 12]


def test_a_later_commit_replaces_an_earlier_one(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 10)
    logged.commit("g", "t", 0, 4)
    assert logged.offset("g", "t", 0) == 4


def test_no_metadata_is_stored_as_empty_metadata(logged: LoggedOffsets) -> None:
    logged.write(logged.offsets.commit(commit_request("g", [("t", 0, 1, None)]), 9, NOW))
    assert logged.row("g", "t", 0).metadata == ""


@pytest.mark.parametrize(
    ("metadata", "fits"),
    [
        ("x" * 10, True),
        ("x" * 11, False),
        ("é" * 10, True),
        ("\U0001f600" * 5, True),
        ("\U0001f600" * 6, False),
    ],
)
def test_metadata_is_limited_as_java_counts(metadata: str, fits: bool) -> None:
    logged = LoggedOffsets(GroupConfig(offset_metadata_max_bytes=10))
    request = commit_request("g", [("t", 0, 1, metadata), ("t", 1, 2, "short")])
    response = logged.write(logged.offsets.commit(request, 9, NOW))
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert codes(response) == ([0, 0] if fits else [too_large, 0])
    assert logged.offset("g", "t", 0) == (1 if fits else -1)
    assert logged.offset("g", "t", 1) == 2


def test_metadata_comes_back_as_it_was(logged: LoggedOffsets) -> None:
    note = "naïve \U0001f600 \x00 end"
    logged.write(logged.offsets.commit(commit_request("g", [("t", 0, 1, note)], leader_epoch=3), 9, NOW))
    row = logged.row("g", "t", 0)
    assert (row.metadata, row.committed_leader_epoch) == (note, 3)


def test_a_member_of_an_unknown_group_is_refused_by_version(logged: LoggedOffsets) -> None:
    request = commit_request("g", [("t", 0, 1, "")], generation=1, member_id="m")
    with pytest.raises(GroupNotFound):
        logged.offsets.commit(request, 9, NOW)
    with pytest.raises(IllegalGeneration):
        logged.offsets.commit(request, 8, NOW)


@pytest.mark.parametrize("refusal", [UnknownMember, IllegalGeneration, RebalanceInProgress, StaleMemberEpoch])
def test_what_the_group_refuses_is_not_written(logged: LoggedOffsets, refusal: type[Exception]) -> None:
    group = StubGroup("g")
    group.refusal = refusal("no")  # type: ignore[assignment]  # all of them are ours
    logged.groups.put(group)
    request = commit_request("g", [("t", 0, 1, "")], generation=2, member_id="m", instance_id="i")
    with pytest.raises(refusal):
        logged.offsets.commit(request, 7, NOW)
    assert group.commits == [("m", "i", 2, 7, False)]
    assert logged.classic.heard == []


def test_one_partition_that_a_lagging_member_may_not_commit_refuses_all(logged: LoggedOffsets) -> None:
    group = StubGroup("g", GroupType.CONSUMER)
    asked: list[tuple[str, UUID, int]] = []

    def check(topic: str, topic_id: UUID, partition: int) -> None:
        asked.append((topic, topic_id, partition))
        if partition == 1:
            raise StaleMemberEpoch("assigned later")

    group.check = check
    logged.groups.put(group)
    rows = [("t", 0, 1, ""), ("t", 1, 1, ""), ("t", 2, 1, "")]
    with pytest.raises(StaleMemberEpoch):
        logged.offsets.commit(commit_request("g", list(rows), topic_id=TOPIC_ID), 9, NOW)
    assert asked == [("t", TOPIC_ID, 0), ("t", TOPIC_ID, 1)]


@pytest.mark.parametrize(
    ("type", "heard"), [(GroupType.CLASSIC, [("g", "m", NOW)]), (GroupType.CONSUMER, [])]
)
def test_a_commit_keeps_the_session_of_a_classic_member(
    logged: LoggedOffsets, type: GroupType, heard: list[object]
) -> None:
    logged.groups.put(StubGroup("g", type))
    logged.offsets.commit(commit_request("g", [("t", 0, 1, "")], generation=2, member_id="m"), 9, NOW)
    assert logged.classic.heard == heard


def test_in_a_transaction_a_stale_epoch_is_an_illegal_generation(logged: LoggedOffsets) -> None:
    group = StubGroup("g", GroupType.CONSUMER)
    logged.groups.put(group)
    request = transactional_request("g", [("t", 0, 1)], 1, generation=3)
    group.refusal = StaleMemberEpoch("old")
    with pytest.raises(IllegalGeneration):
        logged.offsets.commit_in_transaction(request, 5, NOW)
    group.refusal = None

    def check(_topic: str, _topic_id: UUID, _partition: int) -> None:
        raise StaleMemberEpoch("assigned later")

    group.check = check
    with pytest.raises(IllegalGeneration):
        logged.offsets.commit_in_transaction(request, 5, NOW)
    assert group.commits == [("", None, 3, 5, True)] * 2


def test_in_a_transaction_a_member_of_an_unknown_group_has_an_illegal_generation(
    logged: LoggedOffsets,
) -> None:
    request = transactional_request("g", [("t", 0, 1)], 1, generation=0)
    with pytest.raises(IllegalGeneration):
        logged.offsets.commit_in_transaction(request, 5, NOW)


def test_a_transactional_commit_keeps_no_session_and_no_retention(logged: LoggedOffsets) -> None:
    logged.groups.put(StubGroup("g"))
    request = transactional_request("g", [("t", 0, 1)], 1, generation=2)
    [record] = logged.offsets.commit_in_transaction(request, 5, NOW).records
    assert record.value == OffsetCommitValue(offset=1, commit_timestamp=NOW)
    assert record.value_version == 4
    assert logged.classic.heard == []


def test_transactional_metadata_is_limited_too() -> None:
    logged = LoggedOffsets(GroupConfig(offset_metadata_max_bytes=3))
    request = transactional_request("g", [("t", 0, 1), ("u", 0, 2)], 1)
    request.topics[0].partitions[0].committed_metadata = "long"
    decision = logged.offsets.commit_in_transaction(request, 5, NOW)
    assert codes(decision.response) == [ErrorCode.OFFSET_METADATA_TOO_LARGE, 0]
    assert len(decision.records) == 1


def test_offsets_that_are_new_need_room_and_those_that_are_there_move_on() -> None:
    room = OffsetRoom(MemoryShare("committed offsets", 3_000))
    logged = LoggedOffsets(room=room)
    commit = logged.offsets.commit
    for number in range(4):
        found = codes(logged.write(commit(commit_request("g", [("t", number, 1, "x" * 900)]), 9, NOW)))
        assert found == [0 if number < 2 else ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert room.memory.refusals
    moved = commit_request("g", [("t", 0, 2, "y" * 900), ("t", 9, 1, "")])
    assert codes(logged.write(commit(moved, 9, NOW))) == [0, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert logged.offset("g", "t", 0) == 2
    grown = commit_request("g", [("t", 0, 3, "y" * 901)])
    assert codes(logged.write(commit(grown, 9, NOW))) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    pending = logged.offsets.commit_in_transaction(transactional_request("g", [("t", 0, 5)], 1), 3, NOW)
    assert codes(pending.response) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_what_is_counted_of_offsets_is_nothing_when_all_are_gone() -> None:
    memory = MemoryShare("committed offsets", 1_000_000)
    logged = LoggedOffsets(room=OffsetRoom(memory))
    for number in range(20):
        wanted = [("t", number % 3, number, "x" * number), ("u", number, 1, "")]
        logged.write(logged.offsets.commit(commit_request(f"g{number % 2}", wanted), 9, NOW))
        transactional = transactional_request(f"g{number % 2}", [("t", number, 5)], number % 4)
        logged.write(logged.offsets.commit_in_transaction(transactional, 3, NOW), producer_id=number % 4)
    assert memory.used_bytes == logged.offsets.table.size_bytes > 10_000
    for producer in range(2):
        logged.end(producer, committed=producer == 0)
    for group in ("g0", "g1"):
        logged.write(Decision(logged.offsets.tombstones(group), None))
    assert memory.used_bytes == logged.offsets.table.size_bytes == 0
