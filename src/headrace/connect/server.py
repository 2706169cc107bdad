"""A worker as a process: follows the topics, takes part in the group, serves HTTP, ends on a signal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Final

from headrace.client.cluster import Cluster
from headrace.client.security import PLAINTEXT, ClientSecurity
from headrace.config.http_listener import HttpListener
from headrace.connect.config_records import LoggerLevel
from headrace.connect.errors import ConnectError
from headrace.connect.http.app import application
from headrace.connect.http.wire import Parts
from headrace.connect.loggers import Loggers
from headrace.connect.offset_service import OffsetService
from headrace.connect.plugins import Plugins
from headrace.connect.runner import Runner
from headrace.connect.service import Service
from headrace.connect.stores import ConfigStore, StatusStore, Topics
from headrace.connect.worker import Worker
from headrace.core.tasks import spawn
from headrace.registry.listening import listen
from headrace.registry.server import Server, certificates_of, guard_of, server_config

log: Final = logging.getLogger("headrace.connect")


@dataclass(frozen=True)
class WorkerOptions:
    bootstrap: str
    listener: HttpListener
    group: str = "connect-cluster"
    topics: Topics = field(default_factory=Topics)
    security: ClientSecurity = PLAINTEXT
    session_timeout_ms: int = 6_000
    advertised: str = ""
    """HOST:PORT that others reach this worker by; empty: what it listens on."""


async def serve(
    options: WorkerOptions, plugins: Plugins, runner: Runner, on_ready: Callable[[str], None]
) -> None:
    """Until a signal comes, or a topic can be followed no more."""
    listener = options.listener
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(listen(listener.host, listener.port))
        url = replace(listener, port=listening.getsockname()[1]).address
        certificates = await certificates_of(listener)
        guard = await guard_of(options.bootstrap, listener, options.security, stack)
        configs = ConfigStore(options.bootstrap, options.topics.configs, security=options.security)
        stack.push_async_callback(configs.close)
        statuses = StatusStore(options.bootstrap, options.topics.statuses, security=options.security)
        stack.push_async_callback(statuses.close)
        cluster = Cluster(options.bootstrap, client_id="headrace-connect", security=options.security)
        stack.push_async_callback(cluster.close)
        await asyncio.gather(configs.open(), statuses.open())
        loggers = _loggers(configs)
        stack.push_async_callback(runner.close)
        worker_id = options.advertised or url.partition("://")[2]
        worker = Worker(
            cluster,
            options.group,
            url,
            worker_id,
            configs,
            statuses,
            plugins,
            runner,
            session_timeout_ms=options.session_timeout_ms,
        )
        stack.push_async_callback(worker.close)
        worker.start()
        parts = Parts(
            Service(configs, statuses, plugins),
            OffsetService(cluster, configs, statuses, plugins, runner),
            loggers,
            (await cluster.metadata([])).cluster_id or "",
            lambda: worker.is_ready,
        )
        server = Server(server_config(application(parts, guard), certificates))
        on_ready(url)
        serving = spawn("the web server", server.serve(sockets=[listening]), is_awaited=True)
        following = [
            spawn(f"the store of {each.partition.topic}", each.failed(), is_awaited=True)
            for each in (configs, statuses)
        ]
        following.append(spawn("the worker", worker.failed(), is_awaited=True))
        if certificates is not None:
            stack.callback(spawn("certificates", certificates.follow()).cancel)
        done, _ = await asyncio.wait([serving, *following], return_when=asyncio.FIRST_COMPLETED)
        server.end()
        await serving
        for each in following:
            if each in done:
                each.result()
            each.cancel()


def _loggers(configs: ConfigStore) -> Loggers:
    loggers = Loggers()

    def change(wish: LoggerLevel) -> None:
        try:
            loggers.set(wish.logger, wish.level)
        except ConnectError as error:
            log.warning("a log level is not known", extra={"error": str(error)})

    # From now on: those that were wished for before the start are over.
    configs.on_level = change
    return loggers
