from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from headrace.broker.runtime.runtime import Runtime
from headrace.broker.security.token_expiry import TokenExpiry
from headrace.controller.security_operations import NewToken, TokenLifetimes
from headrace.controller.shell import Controller
from headrace.controller.tokens import SWEPT_AT_ONCE
from headrace.core.errors import NotController
from headrace.core.timers import TimerQueue
from headrace.security.principal import user
from tests.unit.broker.security.controller_context import CommittingController
from tests.unit.controller.cluster import Cluster

NOW = 10_000


class Sweeping:
    """A sweep every ten milliseconds, of tokens that expire at NOW + 100."""

    def __init__(self, tokens: int) -> None:
        self.now_ms = NOW
        self.logged: list[str] = []
        self.cluster = Cluster()
        self.controller = CommittingController(self.cluster)
        for _ in range(tokens):
            self.cluster.do(
                self.cluster.machine.create_token(NewToken(user("a")), TokenLifetimes(100, 100), NOW)
            )
        runtime = SimpleNamespace(
            clock=SimpleNamespace(wall_ms=lambda: self.now_ms),
            timers=TimerQueue(asyncio.get_running_loop()),
            log=SimpleNamespace(info=lambda event, **_: self.logged.append(event)),
        )
        self.expiry = TokenExpiry(cast(Runtime, runtime), cast(Controller, self.controller), 10)
        self.expiry.start()

    async def until_empty(self) -> None:
        while len(self.cluster.image.tokens):
            await asyncio.sleep(0.005)


async def test_expired_tokens_are_removed_in_steps() -> None:
    sweeping = Sweeping(SWEPT_AT_ONCE + 3)
    sweeping.now_ms = NOW + 101
    async with asyncio.timeout(20):
        await sweeping.until_empty()
    assert [len(commit) for commit in sweeping.controller.commits] == [SWEPT_AT_ONCE, 3]
    await sweeping.expiry.stop()


@pytest.mark.parametrize("active", [True, False])
async def test_what_has_not_expired_and_what_another_controller_sweeps_is_left(active: bool) -> None:
    sweeping = Sweeping(1)
    sweeping.controller.is_active = active
    sweeping.now_ms = NOW + 100 + (not active)
    async with asyncio.timeout(20):
        while active and not sweeping.controller.decisions:
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.03)
    assert bool(sweeping.controller.decisions) == active
    assert len(sweeping.cluster.image.tokens) == 1
    await sweeping.expiry.stop()


async def test_a_failure_is_told_and_the_next_sweep_comes() -> None:
    sweeping = Sweeping(1)
    sweeping.now_ms = NOW + 101
    sweeping.controller.failure = NotController("another is")
    async with asyncio.timeout(20):
        while not sweeping.logged:
            await asyncio.sleep(0.005)
        sweeping.controller.failure = None
        await sweeping.until_empty()
    await sweeping.expiry.stop()
