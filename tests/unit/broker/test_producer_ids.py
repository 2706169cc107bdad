"""Producer ids come in blocks from the controller, and wait for it while the controller moves."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headrace.broker.coordinators import producer_ids
from headrace.broker.coordinators.producer_ids import ProducerIds
from headrace.broker.requests.in_flight import InFlightRequests
from headrace.core.errors import CoordinatorLoading, NotController
from headrace.core.ports_network import PeerReset
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse


class Channel:
    """Answers in turn; an exception is raised. The last one stays."""

    def __init__(self, *answers: AllocateProducerIdsResponse | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def request(self, *_: Any) -> AllocateProducerIdsResponse:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def ids_of(channel: Channel) -> ProducerIds:
    runtime: Any = SimpleNamespace(broker_id=1, loop=asyncio.get_running_loop())
    node: Any = SimpleNamespace(broker_epoch=7)
    return ProducerIds(runtime, node, cast(Any, channel), InFlightRequests())


def block(first: int, length: int) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=length)


async def test_a_block_is_used_up_before_the_next() -> None:
    channel = Channel(block(0, 2), block(1000, 2))
    ids = ids_of(channel)
    assert [await ids.next() for _ in range(3)] == [0, 1, 1000]
    assert channel.asked == 2


@pytest.mark.parametrize(
    "away",
    [
        PeerReset("the controller stopped"),
        NotController("no controller is active"),
        AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER),
        AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
    ],
)
async def test_a_producer_waits_while_the_controller_moves(
    away: AllocateProducerIdsResponse | Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_ids, "RETRY_SECONDS", 0.001)
    assert await ids_of(Channel(away, away, block(3000, 1000))).next() == 3000


async def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_ids, "WAIT_SECONDS", 0.01)
    with pytest.raises(CoordinatorLoading, match="the controller stopped"):
        await ids_of(Channel(PeerReset("the controller stopped"))).next()
