"""Partitions that wait to be opened: none is forgotten."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from headrace.broker.late_openings import LateOpenings

TOPIC_ID = UUID(int=3)


class Topic:
    name = "orders"
    topic_id = TOPIC_ID

    def __contains__(self, index: int) -> bool:
        return True

    def replicas(self, _: int) -> tuple[int, ...]:
        return (1,)


class Opened:
    """A broker of which only the openings are seen."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = SimpleNamespace(monotonic=self.loop.time)
        self.broker_id = 1
        self.errors: list[str] = []
        self.log = SimpleNamespace(error=lambda text, **_: self.errors.append(text))
        self.image = SimpleNamespace(topic_by_id=lambda _: Topic())
        self.partitions = SimpleNamespace(find=lambda _, index: index if index in self.opened else None)
        self.opened: list[int] = []
        self.targets_this_incarnation = True

    def host(self, _: Any, indexes: list[int]) -> None:
        if indexes == [13]:
            raise ValueError("a mistake")
        self.opened += indexes


def openings_of(broker: Any) -> LateOpenings:
    return LateOpenings(broker, broker.host, lambda: broker.targets_this_incarnation)


async def until_opened(broker: Opened, *indexes: int) -> None:
    async with asyncio.timeout(15):
        while broker.opened != list(indexes):
            await asyncio.sleep(0.001)


async def test_what_waits_is_opened_when_rows_are_said_to_this_process_again() -> None:
    """Between a new registration and the row that says so, nothing tells that rows have been missed."""
    broker = Opened()
    broker.targets_this_incarnation = False
    late = openings_of(broker)
    for index in range(3):
        late.add(TOPIC_ID, index)
    await asyncio.sleep(0.02)
    assert broker.opened == []
    broker.targets_this_incarnation = True
    await until_opened(broker, 0, 1, 2)
    late.stop()


async def test_one_that_cannot_be_opened_does_not_hold_up_the_others() -> None:
    broker = Opened()
    late = openings_of(broker)
    for index in (12, 13, 14):
        late.add(TOPIC_ID, index)
    await until_opened(broker, 12, 14)
    assert len(broker.errors) == 1
    late.stop()
