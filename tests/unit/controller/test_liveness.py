"""Whom the controller takes for dead, and when it rather doubts itself."""

from __future__ import annotations

import pytest

from headrace.controller.liveness import Liveness

SESSION = 6.0
THREE = (1, 2, 3)


@pytest.fixture
def liveness() -> Liveness:
    watched = Liveness(local_id=1, session_seconds=SESSION, now=0.0)
    watched.members({1: 10, 2: 20, 3: 30})
    return watched


def ids(liveness: Liveness, now: float, alive: tuple[int, ...] = THREE) -> list[int]:
    return [each.broker_id for each in liveness.to_fence(alive, now)]


def hear_all(liveness: Liveness, now: float) -> None:
    for broker_id in THREE:
        liveness.heard(broker_id, now)


def test_nobody_is_doomed_while_all_are_heard(liveness: Liveness) -> None:
    hear_all(liveness, 5.0)
    assert ids(liveness, 10.0) == []


def test_a_member_that_left_is_doomed_at_once(liveness: Liveness) -> None:
    hear_all(liveness, 5.0)
    liveness.members({1: 10, 3: 30})
    assert ids(liveness, 5.1) == [2]


def test_before_the_members_are_known_nobody_is_missed() -> None:
    assert Liveness(1, SESSION, 0.0).to_fence(THREE, 1.0) == []


def test_after_an_outage_of_the_service_a_missing_member_has_one_session_to_come_back(
    liveness: Liveness,
) -> None:
    hear_all(liveness, 5.0)
    liveness.coordination_back(5.0)
    liveness.members({1: 10})
    assert ids(liveness, 10.9) == []
    hear_all(liveness, 11.0)
    assert ids(liveness, 11.1) == [2, 3]


def test_a_refused_port_is_enough(liveness: Liveness) -> None:
    hear_all(liveness, 5.0)
    liveness.suspect(2)
    assert ids(liveness, 5.0) == [2]


def test_a_suspect_that_is_heard_again_is_none(liveness: Liveness) -> None:
    liveness.suspect(2)
    hear_all(liveness, 5.0)
    assert ids(liveness, 5.0) == []


def test_when_more_than_a_third_are_suspect_the_sessions_decide(liveness: Liveness) -> None:
    hear_all(liveness, 5.0)
    liveness.suspect(2)
    liveness.suspect(3)
    assert ids(liveness, 5.0) == []
    liveness.members({1: 10, 3: 30})
    assert ids(liveness, 5.0) == [2]


def test_silence_for_a_session_dooms_even_a_member(liveness: Liveness) -> None:
    hear_all(liveness, 5.0)
    liveness.heard(3, 9.0)
    assert ids(liveness, 11.0) == []
    assert ids(liveness, 11.1) == [2]


def test_silence_counts_from_the_beginning_of_the_term(liveness: Liveness) -> None:
    liveness.heard(3, 5.0)
    assert ids(liveness, 6.0) == []
    assert ids(liveness, 6.1) == [2]


def test_silence_of_all_others_is_the_controllers_own_fault(liveness: Liveness) -> None:
    assert ids(liveness, 100.0) == []


def test_the_controller_never_misses_itself(liveness: Liveness) -> None:
    liveness.heard(2, 50.0)
    liveness.heard(3, 50.0)
    assert ids(liveness, 50.0) == []


def test_only_those_who_are_alive_can_be_doomed(liveness: Liveness) -> None:
    liveness.suspect(2)
    liveness.members({1: 10})
    liveness.heard(3, 5.0)
    assert ids(liveness, 5.0, alive=(1, 3)) == [3]


def test_membership_means_the_same_incarnation(liveness: Liveness) -> None:
    assert liveness.is_member(2, 20)
    assert not liveness.is_member(2, 19)
    assert not liveness.is_member(4, 40)
