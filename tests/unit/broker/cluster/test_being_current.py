"""Who would know by now if another had taken its place, and who would not."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.cluster.node import ClusterNode
from headrace.core.errors import HeadraceError
from headrace.core.ids import BrokerEpoch
from headrace.core.ports_coordination import CoordinationUnavailable

SELF, EPOCH, TERM = 1, BrokerEpoch(7), 3


class ActiveController:
    """A node the active controller, which asks ZooKeeper, or the other brokers where that is away."""

    def __init__(self, others: dict[int, int | None], *, fenced: tuple[int, ...] = ()) -> None:
        """`others`: the controller epoch that each knows beyond what is known here; None if it is silent."""
        self.away = True
        self.latest = TERM
        self.resigned: list[HeadraceError] = []
        self.brokers: dict[int, Any] = {
            each: SimpleNamespace(epoch=EPOCH, fenced=each in fenced) for each in (SELF, *others)
        }
        node: Any = ClusterNode.__new__(ClusterNode)
        node._runtime = SimpleNamespace(loop=asyncio.get_running_loop(), broker_id=SELF)
        node._metadata = SimpleNamespace(image=SimpleNamespace(brokers=self.brokers))
        node._controller = SimpleNamespace(is_active=True, epoch=TERM, resign=self._resign)
        node._confirmed_at = -math.inf
        node._coordination = SimpleNamespace(session_timeout_ms=6000, latest_epoch=self._latest_epoch)
        node._membership = SimpleNamespace(broker_epoch=EPOCH)
        node._follower = SimpleNamespace(epoch_known_to=self._known_to, current_at=-math.inf)
        node._resigned = asyncio.Event()
        self._others = others
        self.node: ClusterNode = node

    def _resign(self, error: HeadraceError) -> None:
        self.resigned.append(error)
        self.node._resigned.set()

    async def _latest_epoch(self) -> int:
        if self.away:
            raise CoordinationUnavailable("no quorum")
        return self.latest

    async def _known_to(self, broker_id: int) -> int | None:
        return self._others[broker_id]

    async def confirm(self) -> bool:
        await self.node._resign_if_deposed()
        return self.node.is_current


async def test_by_the_word_of_zookeeper() -> None:
    controller = ActiveController({2: None, 3: None})
    controller.away = False
    assert await controller.confirm()
    controller.latest = TERM + 1
    await controller.confirm()
    assert len(controller.resigned) == 1


@pytest.mark.parametrize(
    ("others", "current"),
    [
        ({}, True),
        ({2: -1, 3: -1}, True),
        ({2: -1, 3: None}, True),
        ({2: None, 3: None}, False),
        ({2: -1, 3: None, 4: None, 5: None}, False),
    ],
    ids=["alone", "all agree", "most agree", "nobody answers", "a minority"],
)
async def test_without_zookeeper_by_the_word_of_most(others: dict[int, int | None], current: bool) -> None:
    assert await ActiveController(others).confirm() is current


async def test_the_fenced_are_asked_and_do_not_count() -> None:
    assert await ActiveController({2: -1, 3: None}, fenced=(3,)).confirm()
    assert not await ActiveController({2: None, 3: -1}, fenced=(3,)).confirm()
    knowing = ActiveController({2: -1, 3: TERM + 1}, fenced=(3,))
    assert not await knowing.confirm()
    assert len(knowing.resigned) == 1


async def test_not_before_the_metadata_has_its_last_registration() -> None:
    """What was decided about the one before it is passed over, and so it would still lead as that one."""
    controller = ActiveController({2: -1, 3: -1})
    assert await controller.confirm()
    controller.brokers[SELF] = SimpleNamespace(epoch=EPOCH - 1, fenced=True)
    assert not controller.node.is_current
    controller.brokers[SELF] = SimpleNamespace(epoch=EPOCH, fenced=True)
    assert not controller.node.is_current
