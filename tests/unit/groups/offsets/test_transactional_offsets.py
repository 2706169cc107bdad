from __future__ import annotations

import pytest

from headrace.coordinators.decision import CoordinatorRecord, Decision
from headrace.groups.offsets.stored_offset import tombstone
from headrace.protocol.stored.legacy_offset_commit_key import LegacyOffsetCommitKey
from headrace.protocol.stored.legacy_offset_commit_value import LegacyOffsetCommitValue
from tests.unit.groups.offsets.logged_offsets import LoggedOffsets
from tests.unit.groups.offsets.state import state_of


@pytest.fixture
def logged() -> LoggedOffsets:
    return LoggedOffsets()


def test_pending_until_committed(logged: LoggedOffsets) -> None:
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    assert logged.offset("g", "t", 0) == -1
    assert "g" in logged.groups, "so that nobody takes the id for another kind of group"
    logged.end(1, committed=True)
    assert logged.offset("g", "t", 0) == 10


def test_gone_when_aborted(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    logged.end(1, committed=False)
    assert logged.offset("g", "t", 0) == 5
    assert not logged.offsets.table.pending.has_group("g")


def test_a_producer_may_commit_twice_in_one_transaction(logged: LoggedOffsets) -> None:
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    logged.commit_in_transaction(1, "g", "t", 0, 11)
    logged.end(1, committed=True)
    assert logged.offset("g", "t", 0) == 11


def test_of_two_transactions_the_later_record_counts_whoever_ends_last(logged: LoggedOffsets) -> None:
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    logged.commit_in_transaction(2, "g", "t", 0, 20)
    logged.end(2, committed=True)
    assert logged.row("g", "t", 0, require_stable=True).error_code != 0
    logged.end(1, committed=True)
    assert logged.offset("g", "t", 0) == 20
    assert logged.row("g", "t", 0, require_stable=True).error_code == 0


def test_a_plain_commit_after_a_pending_one_counts(logged: LoggedOffsets) -> None:
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    logged.commit("g", "t", 0, 7)
    logged.end(1, committed=True)
    assert logged.offset("g", "t", 0) == 7


def test_a_plain_commit_before_a_pending_one_does_not(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 7)
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    logged.end(1, committed=True)
    assert logged.offset("g", "t", 0) == 10


def test_a_tombstone_ends_what_is_pending_under_it(logged: LoggedOffsets) -> None:
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    logged.commit_in_transaction(1, "g", "t", 1, 11)
    logged.commit_in_transaction(2, "g", "t", 0, 12)
    logged.write(Decision([tombstone("g", "t", 0)]))
    logged.end(1, committed=True)
    logged.end(2, committed=True)
    assert (logged.offset("g", "t", 0), logged.offset("g", "t", 1)) == (-1, 11)


def test_a_commit_after_a_tombstone_is_pending_again(logged: LoggedOffsets) -> None:
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    logged.write(Decision([tombstone("g", "t", 0)]))
    logged.commit_in_transaction(1, "g", "t", 0, 12)
    logged.end(1, committed=True)
    assert logged.offset("g", "t", 0) == 12


def test_a_marker_of_a_producer_that_left_nothing_changes_nothing(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.end(77, committed=True)
    logged.end(77, committed=False)
    assert logged.offset("g", "t", 0) == 5


def test_one_transaction_over_several_groups(logged: LoggedOffsets) -> None:
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    logged.commit_in_transaction(1, "h", "t", 0, 11)
    logged.end(1, committed=True)
    assert (logged.offset("g", "t", 0), logged.offset("h", "t", 0)) == (10, 11)


def test_another_coordinator_reads_the_same_in_the_middle_of_transactions(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit_in_transaction(1, "g", "t", 0, 10)
    logged.commit_in_transaction(2, "g", "t", 1, 11)
    logged.end(2, committed=True)
    logged.commit_in_transaction(3, "g", "u", 0, 12)
    logged.end(3, committed=False)
    assert state_of(logged.reread()) == state_of(logged.offsets)


def test_records_of_the_first_kind_are_read(logged: LoggedOffsets) -> None:
    key = LegacyOffsetCommitKey(group="g", topic="t", partition=2)
    value = LegacyOffsetCommitValue(offset=9, metadata="old", commit_timestamp=1)
    logged.write(Decision([CoordinatorRecord(key, value)]))
    assert (logged.row("g", "t", 2).committed_offset, logged.row("g", "t", 2).metadata) == (9, "old")
    logged.write(Decision([CoordinatorRecord(key, None)]))
    assert logged.offset("g", "t", 2) == -1
