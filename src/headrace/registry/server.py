"""The registry as a process: opens the store, serves HTTP, ends on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import uvicorn
from starlette.types import ASGIApp

from headrace.client.cluster import Cluster
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.config.http_listener import BASIC, BEARER, HttpListener
from headrace.core.tasks import spawn
from headrace.http.gate import Gate
from headrace.http.passwords import Passwords
from headrace.http.tokens import Tokens
from headrace.registry.http.app import application
from headrace.registry.http.guard import Guard
from headrace.registry.http.patient_protocol import PatientProtocol
from headrace.registry.http.peer_certificate import CertifiedProtocol
from headrace.registry.listening import listen
from headrace.registry.log_ins import log_in_check
from headrace.registry.rights import REQUEST_SECONDS, Rules
from headrace.registry.service import Service
from headrace.registry.store import Store
from headrace.tls.renewable import renewable

if TYPE_CHECKING:
    from headrace.registry.certificates import Certificates


class Server(uvicorn.Server):
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
    listener: HttpListener,
    topic: str,
    on_ready: Callable[[str], None],
    security: ClientSecurity = PLAINTEXT,
) -> None:
    """Until a signal comes, or the topic can be followed no more."""
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(listen(listener.host, listener.port))
        certificates = await certificates_of(listener)
        guard = await guard_of(bootstrap, listener, security, stack)
        store = Store(bootstrap, topic, security=security)
        stack.push_async_callback(store.close)
        await store.open()
        server = Server(server_config(application(Service(store), guard), certificates))
        on_ready(replace(listener, port=listening.getsockname()[1]).address)
        serving = spawn("the web server", server.serve(sockets=[listening]), is_awaited=True)
        following = spawn("the store", store.failed(), is_awaited=True)
        if certificates is not None:
            stack.callback(spawn("certificates", certificates.follow()).cancel)
        await asyncio.wait([serving, following], return_when=asyncio.FIRST_COMPLETED)
        server.end()
        await serving
        if following.done():
            following.result()
        following.cancel()


async def certificates_of(listener: HttpListener) -> Certificates | None:
    if listener.security is None or listener.security.tls is None:
        return None
    # Only here: a registry without TLS needs no library for certificates, and does not load it.
    from headrace.registry.certificates import Certificates

    return await asyncio.to_thread(Certificates, listener.security.tls)


async def guard_of(
    bootstrap: str, listener: HttpListener, security: ClientSecurity, stack: AsyncExitStack
) -> Callable[[ASGIApp], ASGIApp] | None:
    """None where nobody is asked who they are. Raises ConfigError and ClientFailure."""
    if not listener.methods:
        return None
    passwords = Passwords(log_in_check(bootstrap, security)) if BASIC in listener.methods else None
    tokens = Tokens.read(listener.token_file or "") if BEARER in listener.methods else None
    gate = Gate(listener, passwords, tokens)
    client = Cluster(
        bootstrap, client_id="headrace-registry-rules", request_timeout=REQUEST_SECONDS, security=security
    )
    rules = Rules(client)
    stack.push_async_callback(rules.close)
    await rules.open()
    return lambda app: Guard(app, gate, rules)


def server_config(
    app: ASGIApp, certificates: Certificates | None, *, keep_alive_seconds: int = 5
) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=PatientProtocol if certificates is None else CertifiedProtocol,
        server_header=False,
        ssl_context_factory=None
        if certificates is None
        else lambda _config, _default: renewable(lambda: certificates.context),
        # Rules can be for an address: a header must not claim another.
        proxy_headers=False,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=10,
        timeout_keep_alive=keep_alive_seconds,
    )


def run(
    bootstrap: str,
    listener: HttpListener,
    topic: str,
    on_ready: Callable[[str], None],
    security: ClientSecurity = PLAINTEXT,
) -> None:
    asyncio.run(serve(bootstrap, listener, topic, on_ready, security))
