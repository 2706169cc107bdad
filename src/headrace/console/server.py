"""The console as a process: looks at the cluster, serves pages, ends on a signal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from starlette.types import ASGIApp
from uvicorn import Config

from headrace.audit.verdict import DEFAULT_TOPIC
from headrace.client.cluster import Cluster
from headrace.client.rest import Rest
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.config.http_listener import BASIC, BEARER, HttpListener
from headrace.console.changes.making import SECONDS, Changes
from headrace.console.http.app import application
from headrace.console.http.guard import Guard
from headrace.console.http.records import Source
from headrace.console.http.tail import Tails
from headrace.console.services.services import Services
from headrace.core.errors import ConfigError
from headrace.core.tasks import spawn
from headrace.http.gate import Gate
from headrace.http.passwords import Passwords
from headrace.http.tokens import Tokens
from headrace.observe.poller import INTERVAL_SECONDS, REQUEST_SECONDS, Failing
from headrace.observe.watching import Watching
from headrace.registry.listening import listen
from headrace.registry.log_ins import log_in_check
from headrace.registry.rights import Rules
from headrace.registry.server import Server, certificates_of, server_config

RECORDS_SECONDS: Final = 10.0
"""So long a page of records may take to be answered."""
KEEP_ALIVE_SECONDS: Final = 20
"""A page asks again every five seconds: its connection is still there then."""
_LOOK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    bootstrap: str
    listener: HttpListener
    security: ClientSecurity = PLAINTEXT
    interval_seconds: float = INTERVAL_SECONDS
    audit_topic: str = DEFAULT_TOPIC
    hosts: tuple[str, ...] = ()
    """Names beside the loopback's under which browsers come here."""
    shows_records: bool = True
    allows_changes: bool = False
    registry: Rest | None = None
    connect: Rest | None = None


class _Watching(Watching):
    """Pages do not say of a cluster what was so before it stopped to answer."""

    @property
    def failing(self) -> Failing | None:
        return super().failing or (None if self.snapshot is None else self.overdue)


class _Server(Server):
    def __init__(self, config: Config, tails: Tails) -> None:
        super().__init__(config)
        self._tails = tails

    def end(self) -> None:
        self._tails.end()
        super().end()


async def serve(settings: Settings, on_ready: Callable[[str], None]) -> None:
    listener = settings.listener
    connect = partial(Cluster, settings.bootstrap, client_id="headrace-console", security=settings.security)
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(listen(listener.host, listener.port))
        certificates = await certificates_of(listener)
        guard = await _guard_of(settings, stack)
        watching = _Watching(
            partial(connect, connect_timeout=REQUEST_SECONDS, request_timeout=REQUEST_SECONDS),
            settings.interval_seconds,
            settings.audit_topic,
        )
        source = Source(
            partial(connect, request_timeout=RECORDS_SECONDS), shows_records=settings.shows_records
        )
        tails = Tails()
        services = Services.at(settings.registry, settings.connect)
        host = f"[{listener.host}]" if ":" in listener.host else listener.host
        app = application(
            watching,
            source,
            hosts=(host, *settings.hosts),
            guard=guard,
            making=changes_of(settings),
            services=services,
            tails=tails,
        )
        server = _Server(server_config(app, certificates, keep_alive_seconds=KEEP_ALIVE_SECONDS), tails)
        watching.start()
        stack.push_async_callback(asyncio.to_thread, watching.stop)
        services.start()
        stack.push_async_callback(asyncio.to_thread, services.stop)
        if certificates is not None:
            stack.callback(spawn("certificates", certificates.follow()).cancel)
        on_ready(replace(listener, port=listening.getsockname()[1]).address)
        ending = spawn("the poller's end", _end_with(watching, server))
        stack.callback(ending.cancel)
        await server.serve(sockets=[listening])
    if watching.failure is not None:
        raise watching.failure


def changes_of(settings: Settings) -> Changes | None:
    """Raises ConfigError where it would not be clear as whom a change is made."""
    listener = settings.listener
    if not settings.allows_changes:
        return None
    if listener.is_open:
        raise ConfigError(
            f"--allow-changes: {listener.address} is served to everybody, who could change the cluster as the"
            " console's own user: set --authentication to basic"
        )
    if listener.methods and BASIC not in listener.methods:
        raise ConfigError(
            "--allow-changes: a change is made as whoever asks for it, and the console cannot log in at the"
            " brokers for them with a token or a certificate: add basic to --authentication"
        )

    def connect(security: ClientSecurity) -> Cluster:
        return Cluster(
            settings.bootstrap, client_id="headrace-console", request_timeout=SECONDS, security=security
        )

    return Changes(connect, settings.security)


async def _end_with(watching: Watching, server: Server) -> None:
    """Pages that nobody brings up to date are worse than none."""
    while watching.is_running:
        await asyncio.sleep(_LOOK_SECONDS)
    server.end()


async def _guard_of(settings: Settings, stack: AsyncExitStack) -> Callable[[ASGIApp], ASGIApp] | None:
    """None where nobody is asked who they are. Raises ConfigError and ClientFailure."""
    listener, security = settings.listener, settings.security
    if not listener.methods:
        return None
    passwords = Passwords(log_in_check(settings.bootstrap, security)) if BASIC in listener.methods else None
    tokens = Tokens.read(listener.token_file or "") if BEARER in listener.methods else None
    gate = Gate(listener, passwords, tokens)
    client = Cluster(
        settings.bootstrap,
        client_id="headrace-console-rules",
        request_timeout=RECORDS_SECONDS,
        security=security,
    )
    rules = Rules(client)
    stack.push_async_callback(rules.close)
    await rules.open()
    return lambda app: Guard(app, gate, rules)


def run(settings: Settings, on_ready: Callable[[str], None]) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(settings, on_ready))
