"""What a broker costs before anyone uses it: start, memory, idle connections, shutdown."""

from __future__ import annotations

import resource
import socket
import time

from bench import wire
from bench.broker import Broker
from bench.case import Case, Sample, Side
from bench.process_cost import wait_until_quiet
from bench.quantity import Goal, Quantity

MB = 1e6
SPARE = 200
"""Descriptors that a broker, or a client, has open besides its connections and logs."""


class StartAndStop(Case):
    """The second and later starts of a data directory: the first one formats it."""

    name = "start"
    group = "start"
    title = "at rest"
    warmed = False
    quantities = (
        Quantity("start_s", "start to first answer", "s", Goal.VALUE_AT_MOST, 0.7),
        Quantity("idle_mb", "idle memory", "MB", Goal.VALUE_AT_MOST, 80.0),
        Quantity("stop_s", "shutdown", "s"),
    )
    IDLE_S = 5.0

    def __init__(self) -> None:
        self._brokers: dict[str, Broker] = {}

    def prepare(self, side: Side) -> None:
        broker = self._brokers[side.name] = side.separate_broker(self.name)
        broker.start()
        broker.stop()

    def run(self, side: Side) -> Sample:
        broker = self._brokers[side.name]
        start_s = broker.start()
        cpu_s = broker.cpu_seconds()
        time.sleep(side.scale.count(int(self.IDLE_S)))
        idle = broker.resident_bytes()
        return {"start_s": start_s, "start_cpu_s": cpu_s, "idle_mb": idle / MB, "stop_s": broker.stop()}

    def finish(self, side: Side) -> None:
        if broker := self._brokers.pop(side.name, None):
            broker.stop()


class IdleConnections(Case):
    """Connections that have asked once and then stay silent."""

    name = "connections"
    group = "connections"
    title = "1,000 idle connections"
    # Each run has a new process: memory once freed to an allocator would hide the next run's need.
    warmed = False
    quantities = (Quantity("bytes_each", "memory each", "B", Goal.VALUE_AT_MOST, 4096.0),)
    CONNECTIONS = 1000
    FIRST = 50

    def __init__(self) -> None:
        self._brokers: dict[str, Broker] = {}

    def prepare(self, side: Side) -> None:
        allow_connections(self.CONNECTIONS)
        self._brokers[side.name] = side.separate_broker(self.name)

    def run(self, side: Side) -> Sample:
        broker = self._brokers[side.name]
        broker.start()
        connections: list[socket.socket] = []
        try:
            # The first ones load code and fill caches; they stay open, and are not counted.
            connections.extend(wire.connect(broker.port) for _ in range(self.FIRST))
            wait_until_quiet(broker.pid)
            time.sleep(2.0)
            before = broker.resident_bytes()
            count = side.scale.count(self.CONNECTIONS, least=200)
            began, cpu_s = time.monotonic(), broker.cpu_seconds()
            connections.extend(wire.connect(broker.port) for _ in range(count))
            connect_s, cpu_s = time.monotonic() - began, broker.cpu_seconds() - cpu_s
            time.sleep(1.0)
            after = broker.resident_bytes()
        finally:
            for connection in connections:
                connection.close()
            broker.stop()
        return {
            "bytes_each": (after - before) / count,
            "connect_ms_each": connect_s / count * 1e3,
            "cpu_ms_each": cpu_s / count * 1e3,
        }

    def finish(self, side: Side) -> None:
        if broker := self._brokers.pop(side.name, None):
            broker.stop()


def allow_connections(wanted: int) -> int:
    """How many of them a broker will take. It inherits this process's limit, and Headrace keeps half of its
    descriptors for its logs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 2 * (wanted + SPARE)
    if hard != resource.RLIM_INFINITY:
        enough = min(enough, hard)
    if soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
    return min(wanted, max(soft, enough) // 2 - SPARE)


CASES: list[Case] = [StartAndStop(), IdleConnections()]
