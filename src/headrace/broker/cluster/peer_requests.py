"""One request to a peer and its answer, over a link."""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

from headrace.core.ports_network import Link, PeerSilent
from headrace.protocol.headers import LENGTH_SIZE, frame_request, read_response_header
from headrace.protocol.message import Message
from headrace.protocol.primitives import Reader

A = TypeVar("A", bound=Message)

CLIENT_ID: Final = "broker"


async def ask(link: Link, message: Message, answer: type[A], *, version: int, timeout: float) -> A:
    """Raises PeerReset or PeerSilent: then nobody knows whether the request took effect."""
    frame = memoryview(frame_request(message, version, 0, CLIENT_ID))[LENGTH_SIZE:]
    try:
        async with asyncio.timeout(timeout):
            body = await link.send(frame)
    except TimeoutError:
        link.close()
        raise PeerSilent(f"no answer to {type(message).__name__} in {timeout:g} s") from None
    _, at = read_response_header(body, message.API_KEY, version)
    return answer.decode(Reader(body, at), version)
