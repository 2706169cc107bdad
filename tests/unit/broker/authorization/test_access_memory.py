"""What is remembered of accesses, and how much of it at most."""

from __future__ import annotations

import pytest

from headrace.broker.authorization import access_memory as module
from headrace.broker.authorization.access_memory import LONGEST_KEPT_NAME, AccessTable
from headrace.security.acl import Operation, ResourceType
from headrace.security.acl_usage import Access


def access(name: str = "t", principal: str = "User:alice") -> Access:
    return Access(principal, Operation.READ, ResourceType.TOPIC, name)


def test_the_last_host_and_time_are_kept() -> None:
    table = AccessTable()
    table.note(access(), "10.0.0.1", 5)
    table.note(access(), "10.0.0.2", 9)
    ((kept, seen),) = table
    assert kept == access()
    assert (seen.count, seen.first_ms, seen.last_ms, seen.last_host) == (2, 5, 9, "10.0.0.2")


def test_one_principal_does_not_take_the_place_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OF_ONE", 10)
    monkeypatch.setattr(module, "MOST_KEPT", 15)
    table = AccessTable()
    for number in range(100):
        table.note(access(f"t{number}"), "h", number)
    assert (len(table), table.overflow) == (10, 90)
    table.note(access("t0"), "h", 1000)
    assert table.overflow == 90, "who is known is noted further"
    for number in range(10):
        table.note(access(f"t{number}", "User:bob"), "h", number)
    assert (len(table), table.overflow) == (15, 95)


@pytest.mark.parametrize("long", [access("x" * (LONGEST_KEPT_NAME + 1)), access("t", "x" * 300)])
def test_long_names_are_not_kept(long: Access) -> None:
    table = AccessTable()
    table.note(long, "h", 1)
    assert (len(table), table.overflow) == (0, 1)
