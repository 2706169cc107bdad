"""Partitions that wait to be opened: none is forgotten."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from headrace.broker.storage.late_openings import LateOpenings

TOPIC_ID = UUID(int=3)


class Topic:
    name = "orders"
    topic_id = TOPIC_ID

    def __contains__(self, index: int) -> bool:
        return True

    def replicas(self, _: int) -> tuple[int, ...]:
        return (1,)


class Opened:
    """What waits, and what is seen of its openings."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.errors: list[str] = []
        self.opened: list[int] = []
        self.targets_this_incarnation = True
        runtime: Any = SimpleNamespace(
            loop=loop,
            clock=SimpleNamespace(monotonic=loop.time),
            broker_id=1,
            log=SimpleNamespace(error=lambda text, **_: self.errors.append(text)),
        )
        metadata: Any = SimpleNamespace(image=SimpleNamespace(topic_by_id=lambda _: Topic()))
        partitions: Any = SimpleNamespace(find=lambda _, index: index if index in self.opened else None)
        self.late = LateOpenings(
            runtime, metadata, partitions, self.host, lambda: self.targets_this_incarnation
        )

    def host(self, _: Any, indexes: list[int]) -> None:
        if indexes == [13]:
            raise ValueError("a mistake")
        self.opened += indexes


async def until_opened(host: Opened, *indexes: int) -> None:
    async with asyncio.timeout(15):
        while host.opened != list(indexes):
            await asyncio.sleep(0.001)


async def test_what_waits_is_opened_when_rows_are_said_to_this_process_again() -> None:
    """Between a new registration and the row that says so, nothing tells that rows have been missed."""
    host = Opened()
    host.targets_this_incarnation = False
    late = host.late
    for index in range(3):
        late.add(TOPIC_ID, index)
    await asyncio.sleep(0.02)
    assert host.opened == []
    host.targets_this_incarnation = True
    await until_opened(host, 0, 1, 2)
    late.stop()


async def test_one_that_cannot_be_opened_does_not_hold_up_the_others() -> None:
    host = Opened()
    late = host.late
    for index in (12, 13, 14):
        late.add(TOPIC_ID, index)
    await until_opened(host, 12, 14)
    assert len(host.errors) == 1
    late.stop()
