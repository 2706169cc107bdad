"""The registry as a process: opens the store, serves HTTP, ends on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.core.tasks import spawn
from headrace.registry.http.app import application
from headrace.registry.service import Service
from headrace.registry.store import Store


class _Server(uvicorn.Server):
    """uvicorn raises a caught signal again when it is done, so that the process would not end with 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.end)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def end(self) -> None:
        self.should_exit = True


async def serve(
    bootstrap: str,
    host: str,
    port: int,
    topic: str,
    on_ready: Callable[[str], None],
    security: ClientSecurity = PLAINTEXT,
) -> None:
    """Until a signal comes, or the topic can be followed no more."""
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    store = Store(bootstrap, topic, security=security)
    try:
        await store.open()
        config = uvicorn.Config(
            application(Service(store)),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=10,
        )
        server = _Server(config)
        address = f"[{host}]" if ":" in host else host
        on_ready(f"http://{address}:{listening.getsockname()[1]}")
        serving = spawn("the web server", server.serve(sockets=[listening]), is_awaited=True)
        following = spawn("the store", store.failed(), is_awaited=True)
        await asyncio.wait([serving, following], return_when=asyncio.FIRST_COMPLETED)
        server.end()
        await serving
        if following.done():
            following.result()
        following.cancel()
    finally:
        listening.close()
        await store.close()


def run(
    bootstrap: str,
    host: str,
    port: int,
    topic: str,
    on_ready: Callable[[str], None],
    security: ClientSecurity = PLAINTEXT,
) -> None:
    asyncio.run(serve(bootstrap, host, port, topic, on_ready, security))
