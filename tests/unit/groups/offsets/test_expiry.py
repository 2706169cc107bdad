from __future__ import annotations

import pytest

from headrace.groups.group_config import GroupConfig
from headrace.groups.offsets import expiry
from headrace.groups.offsets.removals import weight_of
from tests.unit.groups.offsets.logged_offsets import NOW, LoggedOffsets, StubGroup, commit_request
from tests.unit.groups.offsets.state import state_of

MINUTE = 60_000
RETENTION = 10 * MINUTE


@pytest.fixture
def logged() -> LoggedOffsets:
    config = GroupConfig(offsets_retention_minutes=10, offsets_retention_check_interval_ms=MINUTE)
    logged = LoggedOffsets(config)
    logged.write(logged.offsets.on_loaded(NOW))
    return logged


def group_of(logged: LoggedOffsets, group_id: str) -> StubGroup:
    group = logged.groups.get(group_id)
    assert isinstance(group, StubGroup)
    return group


def pass_minutes(logged: LoggedOffsets, minutes: int) -> None:
    for _ in range(minutes):
        logged.pass_time(MINUTE)


def test_a_simple_group_goes_with_its_last_offset(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    pass_minutes(logged, 3)
    logged.commit("g", "t", 1, 6, now_ms=NOW + 3 * MINUTE)
    pass_minutes(logged, 6)
    assert logged.offset("g", "t", 0) == 5
    pass_minutes(logged, 1)
    assert (logged.offset("g", "t", 0), logged.offset("g", "t", 1)) == (-1, 6)
    assert "g" in logged.groups
    pass_minutes(logged, 3)
    assert "g" not in logged.groups
    assert state_of(logged.offsets)["committed"] == {}
    assert state_of(logged.reread()) == state_of(logged.offsets)


def test_a_new_commit_begins_the_retention_again(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    pass_minutes(logged, 9)
    logged.commit("g", "t", 0, 6, now_ms=NOW + 9 * MINUTE)
    pass_minutes(logged, 9)
    assert logged.offset("g", "t", 0) == 6
    pass_minutes(logged, 1)
    assert logged.offset("g", "t", 0) == -1


def test_an_empty_group_keeps_its_offsets_from_its_end_on(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    group_of(logged, "g").empty_since_ms = NOW + 5 * MINUTE
    pass_minutes(logged, 14)
    assert logged.offset("g", "t", 0) == 5
    pass_minutes(logged, 1)
    assert logged.offset("g", "t", 0) == -1


def test_subscribed_topics_keep_their_offsets(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit("g", "u", 0, 6)
    group_of(logged, "g").subscribed = ("t",)
    pass_minutes(logged, 20)
    assert (logged.offset("g", "t", 0), logged.offset("g", "u", 0)) == (5, -1)
    assert "g" in logged.groups


def test_a_group_with_members_outlives_its_offsets(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    group_of(logged, "g").empty = False
    pass_minutes(logged, 10)
    assert logged.offset("g", "t", 0) == -1
    assert "g" in logged.groups


def test_an_expiry_that_the_client_gave_counts_instead(logged: LoggedOffsets) -> None:
    soon = commit_request("g", [("t", 0, 5, "")], retention_ms=2 * MINUTE)
    late = commit_request("g", [("t", 1, 6, "")], retention_ms=20 * MINUTE)
    logged.write(logged.offsets.commit(soon, 4, NOW))
    logged.write(logged.offsets.commit(late, 4, NOW))
    pass_minutes(logged, 2)
    assert (logged.offset("g", "t", 0), logged.offset("g", "t", 1)) == (-1, 6)
    pass_minutes(logged, 17)
    assert logged.offset("g", "t", 1) == 6
    pass_minutes(logged, 1)
    assert logged.offset("g", "t", 1) == -1


def test_what_a_transaction_may_change_does_not_expire(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit("g", "t", 1, 6)
    logged.commit_in_transaction(1, "g", "t", 0, 50)
    pass_minutes(logged, 10)
    assert (logged.offset("g", "t", 0), logged.offset("g", "t", 1)) == (5, -1)
    logged.end(1, committed=False)
    pass_minutes(logged, 1)
    assert "g" not in logged.groups


def test_a_group_with_only_pending_offsets_stays(logged: LoggedOffsets) -> None:
    logged.commit_in_transaction(1, "g", "t", 0, 50)
    pass_minutes(logged, 30)
    assert "g" in logged.groups
    logged.end(1, committed=True)
    assert logged.offset("g", "t", 0) == 50


def test_an_empty_group_without_offsets_goes_at_the_next_look(logged: LoggedOffsets) -> None:
    logged.classic.create_simple_group("g")
    busy = StubGroup("h")
    busy.empty = False
    logged.groups.put(busy)
    pass_minutes(logged, 1)
    assert ("g" in logged.groups, "h" in logged.groups) == (False, True)


def test_a_round_is_done_in_turns_and_in_batches(
    logged: LoggedOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "LOOKED_AT_ONCE", 6)
    monkeypatch.setattr(expiry, "BYTES_AT_ONCE", 4 * weight_of("g0", "t"))
    for group in range(5):
        for partition in range(9):
            logged.commit(f"g{group}", "t", partition, 1)
    pass_minutes(logged, 9)
    logged.timers.now_ms += MINUTE
    sizes = []
    while (operation := logged.timers.pop_due()) is not None:
        decision = operation(int(logged.timers.now_ms))
        sizes.append(len(decision.records))
        logged.write(decision)
    assert max(sizes) == 4
    assert len(sizes) >= 45 / 4
    assert len(logged.groups) == 0
    assert state_of(logged.offsets)["committed"] == {}


def test_a_coordinator_that_is_not_loaded_looks_for_nothing() -> None:
    logged = LoggedOffsets(GroupConfig(offsets_retention_minutes=1))
    logged.commit("g", "t", 0, 5)
    assert logged.pass_time(60 * MINUTE) == 0


def test_a_timer_that_comes_late_goes_by_the_time_at_which_it_comes(logged: LoggedOffsets) -> None:
    logged.commit("g", "t", 0, 5)
    logged.commit("h", "t", 0, 6, now_ms=NOW + RETENTION)
    logged.pass_time(RETENTION)
    assert (logged.offset("g", "t", 0), logged.offset("h", "t", 0)) == (-1, 6)


def test_a_round_that_fails_is_not_the_last(logged: LoggedOffsets, monkeypatch: pytest.MonkeyPatch) -> None:
    logged.commit("g", "t", 0, 5)
    pass_minutes(logged, 9)

    def fail(topic: str) -> bool:
        raise LookupError(topic)

    with monkeypatch.context() as patched:
        patched.setattr(group_of(logged, "g"), "is_subscribed_to", fail)
        with pytest.raises(LookupError):
            pass_minutes(logged, 1)
    pass_minutes(logged, 1)
    assert logged.offset("g", "t", 0) == -1


def test_what_cannot_be_written_is_tried_again_in_the_next_round(
    logged: LoggedOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "BYTES_AT_ONCE", 1)
    logged.commit("g", "t", 0, 1)
    logged.commit("g", "t", 1, 1)
    pass_minutes(logged, 9)
    logged.timers.now_ms += MINUTE
    sizes = []
    while (operation := logged.timers.pop_due()) is not None:
        sizes.append(len(operation(int(logged.timers.now_ms)).records))  # and is refused
    assert sizes == [1, 0]
    pass_minutes(logged, 1)
    assert len(logged.groups) == 0
