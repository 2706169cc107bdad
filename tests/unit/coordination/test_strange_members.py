"""Children of the members' node that no broker has made, on a real ZooKeeper."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from headrace.coordination.ensemble.requests import create, delete
from headrace.coordination.zookeeper import ZooKeeperCoordination
from headrace.core.ids import BrokerId
from tests.unit.coordination.worlds import ZooKeeperWorld


async def test_strange_members_are_passed_over_and_named_once(
    zookeeper_chroot: Callable[[], str], caplog: pytest.LogCaptureFixture
) -> None:
    world = ZooKeeperWorld(zookeeper_chroot())
    port = await world.open()
    members = port._members._paths.members
    await port.register(BrokerId(1), b"one")
    for name in ("not-a-number", "1_0", "007", "-5", "99999999999"):
        await port._session.change(create(f"{members}/{name}", b""))
    with caplog.at_level(logging.WARNING, "headrace.zookeeper"):
        for _ in range(2):
            assert {each: member.description for each, member in (await port.members()).items()} == {
                1: b"one"
            }
    assert len([each for each in caplog.messages if "not-a-number" in each]) == 1
    await world.close()


async def test_a_member_that_goes_between_the_list_and_its_reading_is_none(
    zookeeper_chroot: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ZooKeeperWorld(zookeeper_chroot())
    port = await world.open()
    await port.register(BrokerId(1), b"one")
    await port.register(BrokerId(2), b"two")
    _delete_before_reading(monkeypatch, port, BrokerId(2))
    assert list(await port.members()) == [1]
    await world.close()


def _delete_before_reading(
    monkeypatch: pytest.MonkeyPatch, port: ZooKeeperCoordination, broker_id: BrokerId
) -> None:
    listed = port._session.ask_latest

    async def list_then_delete(*requests: Any) -> Any:
        answers = await listed(*requests)
        await port._session.change(delete(port._members._paths.member(broker_id), -1))
        return answers

    monkeypatch.setattr(port._session, "ask_latest", list_then_delete)
