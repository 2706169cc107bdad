"""Ports that stay this process's own, also while nobody listens at them."""

from __future__ import annotations

import os
import random
import socket

PORTS = range(10_000, 20_000)
"""Below those that the kernel gives to outgoing connections, and below those of the tests' ZooKeepers: a
broker that is down for a while must not find its port taken by a client of its neighbours."""
WORKERS = 8
"""pytest's workers draw from shares of their own: each knows only what it has given itself."""
_given: set[int] = set()


def own_port() -> int:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = PORTS[worker % WORKERS :: WORKERS]
    source = random.SystemRandom()
    while True:
        port = source.choice(share)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
