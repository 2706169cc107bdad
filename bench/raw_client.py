"""A connection that sends requests by hand, in the versions that a case names. It negotiates nothing and
retries nothing, so that both brokers get the same requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from bench.load_generator import LoadFailed
from headrace.client.link import TcpDialer, TcpLink
from headrace.core.ports_network import PeerUnavailable
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.headers import LENGTH_SIZE, frame_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from headrace.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from headrace.protocol.primitives import Reader

Answer = TypeVar("Answer", bound=Message)

CLIENT_ID = "bench"
CONNECT_S = 30.0
PATIENCE_S = 60.0
PAUSE_S = 0.1
FIND_VERSION = 4
GROUP_KEYS = 0
TRANSACTION_KEYS = 1
NOT_READY = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    )
)
"""Of a coordinator that was just found: it may still be reading its log."""


class RawClient:
    __slots__ = ("_link",)

    def __init__(self, link: TcpLink) -> None:
        self._link = link

    @classmethod
    async def open(cls, port: int) -> RawClient:
        return cls(await TcpDialer().dial("127.0.0.1", port, timeout=CONNECT_S))

    async def ask(self, request: Message, version: int, response: type[Answer]) -> Answer:
        try:
            frame = await self._link.send(frame_request(request, version, 0, CLIENT_ID)[LENGTH_SIZE:])
        except PeerUnavailable as error:
            raise LoadFailed(f"a connection was lost: {error}") from error
        _, at = read_response_header(frame, request.API_KEY, version)
        return response.decode(Reader(frame, at), version)

    async def close(self) -> None:
        self._link.close()
        await self._link.wait_closed()


async def open_clients(port: int, count: int) -> list[RawClient]:
    return [await RawClient.open(port) for _ in range(count)]


async def close_clients(clients: Sequence[RawClient]) -> None:
    await asyncio.gather(*(client.close() for client in clients))


async def find_coordinators(client: RawClient, kind: int, keys: Sequence[str]) -> None:
    """Until each of them has one: the first who asks has the internal topic made."""
    give_up = asyncio.get_running_loop().time() + PATIENCE_S
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
    while True:
        answer = await client.ask(request, FIND_VERSION, FindCoordinatorResponse)
        if not any(one.error_code for one in answer.coordinators):
            return
        if asyncio.get_running_loop().time() > give_up:
            raise LoadFailed(f"no coordinator: {answer}")
        await asyncio.sleep(PAUSE_S)


def require(code: int, what: str) -> None:
    if code:
        raise LoadFailed(f"{what} was refused with {ErrorCode(code).name}")
