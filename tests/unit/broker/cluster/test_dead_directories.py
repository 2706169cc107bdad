"""Dead directories are told until the controller has heard of them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from headrace.broker.cluster import dead_directories
from headrace.broker.cluster.dead_directories import DeadDirectories
from headrace.core.errors import NotController
from headrace.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from headrace.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse


class Channel:
    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.told: list[list[UUID]] = []

    async def request(self, message: BrokerHeartbeatRequest, _answer: object) -> BrokerHeartbeatResponse:
        self.told.append(message.offline_log_dirs or [])
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return cast(BrokerHeartbeatResponse, answer)


async def test_whatever_goes_wrong_it_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then a replica that is gone counts as one in sync."""
    monkeypatch.setattr(dead_directories, "PAUSE_SECONDS", 0.005)
    refused, heard = BrokerHeartbeatResponse(error_code=77), BrokerHeartbeatResponse()
    channel: Any = Channel(NotController("nobody"), KeyError("a mistake"), refused, heard)
    runtime: Any = SimpleNamespace(broker_id=1, log=SimpleNamespace(error=lambda *_, **__: None))
    metadata: Any = SimpleNamespace(offset=9)
    node: Any = SimpleNamespace(broker_epoch=5)
    dead = DeadDirectories(runtime, metadata, node, channel)
    dead.report(UUID(int=3))
    async with asyncio.timeout(60):
        while channel.answers:
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)  # and not once more
    dead.stop()
    assert channel.told == [[UUID(int=3)]] * 4
