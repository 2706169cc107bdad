"""One client for a source, whoever asks first."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from headrace.broker.linking.source import Source, SourceKey


async def test_who_asks_at_the_same_time_gets_the_same_client() -> None:
    """A second one would be forgotten with its connection open."""
    runtime = SimpleNamespace(
        loop=asyncio.get_running_loop(),
        static_config=SimpleNamespace(replica_socket_receive_buffer_bytes=-1),
    )
    host: Any = SimpleNamespace(runtime=runtime)
    source = Source(host, SourceKey("127.0.0.1:9", None), lambda *_: None, lambda _: None)
    first, second = await asyncio.gather(source.cluster(), source.cluster())
    assert first is second
    await source.stop()
