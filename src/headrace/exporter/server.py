"""The exporter as a process: looks at the cluster, answers scrapes, ends on a signal."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from headrace.client.cluster import Cluster
from headrace.client.security import ClientSecurity
from headrace.config.http_listener import HttpListener
from headrace.exporter.families import families
from headrace.observe.poller import REQUEST_SECONDS
from headrace.observe.watching import Watching


class SnapshotCollector(Collector):
    """A scrape tells the last snapshot: it asks no broker, however many scrape."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching

    def collect(self) -> Iterator[Metric]:
        seen, failing = self._watching.snapshot, self._watching.failing
        return families(
            seen, is_failing=failing is not None or seen is None, now_ms=time.time_ns() // 1_000_000
        )


@dataclass(frozen=True, slots=True)
class Settings:
    bootstrap: str
    listener: HttpListener
    security: ClientSecurity
    interval_seconds: float
    audit_topic: str


def run(settings: Settings, on_ready: Callable[[str], None]) -> None:
    """Until a signal comes. Raises OSError where it cannot listen, and what the poller died of."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    with_deadlines = partial(Cluster, connect_timeout=REQUEST_SECONDS, request_timeout=REQUEST_SECONDS)
    watching = Watching(
        partial(
            with_deadlines, settings.bootstrap, client_id="headrace-exporter", security=settings.security
        ),
        settings.interval_seconds,
        settings.audit_topic,
    )
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SnapshotCollector(watching))
    listener = settings.listener
    server, thread = start_http_server(listener.port, listener.host, registry)
    watching.start()
    try:
        on_ready(replace(listener, port=server.server_port).address)
        while watching.is_running and not over.wait(1.0):
            pass
    finally:
        watching.stop()
        server.shutdown()
        server.server_close()
        thread.join()
    if watching.failure is not None:
        raise watching.failure
