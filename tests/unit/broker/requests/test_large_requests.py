"""Large requests: few in hand, the others wait as bytes that are counted; who has gone is left out."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.broker.requests.api import Api
from headrace.broker.requests.apis import BY_KEY
from headrace.broker.requests.large_requests import (
    MOST_IN_HAND,
    ClientHasGone,
    LargeRequests,
    NoRoomForRequest,
)
from headrace.core.memory import MemoryShare
from headrace.protocol.api_keys import ApiKey
from headrace.security.principal import ANONYMOUS

METADATA, CREATE_TOPICS, JOIN = (
    BY_KEY[int(key)] for key in (ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.JOIN_GROUP)
)
FRAME = memoryview(bytes(1000))


class Bench:
    def __init__(self, limit: int = 1_000_000) -> None:
        self.memory = MemoryShare("requests", limit)
        self.requests = LargeRequests(self.memory)
        self.asked = 0
        self.in_hand = 0
        self.most = 0
        self.done = asyncio.Event()

    def ask(self, api: Api, *, is_link: bool = False) -> tuple[asyncio.Task[str], Any]:
        self.asked += 1
        host = f"10.0.0.{self.asked}"
        connection = SimpleNamespace(closed=False, is_link=is_link, principal=ANONYMOUS, peer_host=host)
        kept = self.requests.keep(FRAME)

        async def carry_out() -> str:
            self.in_hand += 1
            self.most = max(self.most, self.in_hand)
            await self.done.wait()
            self.in_hand -= 1
            return "answer"

        task = asyncio.ensure_future(self.requests.in_turn(api, kept, cast(Any, connection), carry_out))
        return task, connection


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_few_are_in_hand_and_all_are_answered() -> None:
    bench = Bench()
    asked = [bench.ask(METADATA)[0] for _ in range(20)]
    await settle()
    assert bench.in_hand == MOST_IN_HAND
    assert bench.memory.used_bytes == 20 * len(FRAME)
    bench.done.set()
    assert await asyncio.gather(*asked) == ["answer"] * 20
    assert bench.most == MOST_IN_HAND
    assert bench.memory.used_bytes == 0


async def test_what_waits_for_zookeeper_or_for_members_keeps_nobody_out() -> None:
    bench = Bench()
    asked = [bench.ask(api)[0] for api in (CREATE_TOPICS, JOIN) for _ in range(20)]
    await settle()
    assert bench.in_hand == MOST_IN_HAND + 20
    asked.append(bench.ask(METADATA)[0])
    asked.append(bench.ask(METADATA, is_link=True)[0])
    await settle()
    assert bench.in_hand == MOST_IN_HAND + 22
    bench.done.set()
    await asyncio.gather(*asked)


async def test_whoever_hangs_up_before_its_turn_is_left_out() -> None:
    bench = Bench()
    asked = [bench.ask(METADATA) for _ in range(MOST_IN_HAND + 1)]
    await settle()
    asked[-1][1].closed = True
    bench.done.set()
    with pytest.raises(ClientHasGone):
        await asked[-1][0]
    await asyncio.gather(*(task for task, _ in asked[:-1]))
    assert bench.memory.used_bytes == 0


async def test_without_memory_it_is_refused_and_counted() -> None:
    bench = Bench(limit=1500)
    asked = [bench.ask(METADATA)[0] for _ in range(2)]
    with pytest.raises(NoRoomForRequest):
        bench.ask(METADATA)
    assert bench.memory.refusals == 1
    bench.done.set()
    await asyncio.gather(*asked)
    assert bench.memory.used_bytes == 0
