"""Which properties each of several brokers gets: on a laptop (`headrace up`), and on a host with many cores.

A host runs one broker per core, all derived from one file: ids and ports count up, each broker has a folder
of its own in every log directory, and the host is the rack of all, so that no two replicas of a partition
share it.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from headrace.config.broker import BrokerConfig
from headrace.config.listeners import Listener
from headrace.core.errors import ConfigError

LOOPBACK: Final = "127.0.0.1"
LOCAL: Final = {
    # Whoever tries something out starts one consumer, and would wait three seconds for others.
    "group.initial.rebalance.delay.ms": "0",
}
"""What a broker for tests and a laptop has other than Kafka's defaults."""
_STABLE_PORTS: Final = range(15_000, 32_000)
"""Below those that the kernel gives to outgoing connections: a broker that is down must get its port back."""


def local_properties(
    directory: Path,
    ports: Sequence[int],
    zookeeper: str,
    racks: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
) -> list[dict[str, str]]:
    """One broker per port, on this machine alone. Racks are dealt in turn."""
    count = len(ports)
    return [
        {
            "broker.id": str(number),
            "listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
            "log.dirs": str(directory / f"broker-{number}"),
            "zookeeper.connect": zookeeper,
            "default.replication.factor": str(min(3, count)),
            # With three copies one may be missing, with fewer none: a write that is acked is held twice.
            "min.insync.replicas": "2" if count > 2 else "1",
            # Ctrl-C ends all of them. The last has nobody to hand over to, and need not wait for it.
            "controlled.shutdown.retry.backoff.ms": "200",
            **LOCAL,
            **({"broker.rack": racks[(number - 1) % len(racks)]} if racks else {}),
            **(extra or {}),
        }
        for number, port in enumerate(ports, start=1)
    ]


def host_properties(base: Mapping[str, str], count: int, host: str) -> list[dict[str, str]]:
    """One broker per core of a host, from one file. ConfigError says what the file lacks for that."""
    config = BrokerConfig.parse(base)
    if config.zookeeper is None and count > 1:
        raise ConfigError("zookeeper.connect is not set: more than one broker needs a ZooKeeper")
    if "broker.id" not in config.given and count > 1:
        raise ConfigError(
            "broker.id is not set: it is the id of the first broker, and the others count up from it"
        )
    if any(listener.port == 0 for listener in config.bound_listeners):
        raise ConfigError("listeners: port 0 cannot be counted up; name the port of the first broker")
    replaced = ("node.id", "port", "host.name", "advertised.host.name", "advertised.port", "log.dir")
    derived = []
    for at in range(count):
        broker_id = config.broker_id + at
        properties = {name: text for name, text in base.items() if name not in replaced}
        properties["broker.id"] = str(broker_id)
        properties["listeners"] = _moved(config.bound_listeners, at)
        if config.advertised != config.bound_listeners:
            properties["advertised.listeners"] = _moved(config.advertised, at)
        properties["log.dirs"] = ",".join(
            str(Path(path, f"broker-{broker_id}")) for path in config.data_directories
        )
        properties.setdefault("broker.rack", host)
        if config.metrics is not None:
            port = config.metrics.port
            moved = replace(config.metrics, port=port + at if port else 0)
            properties["headrace.metrics.listener"] = moved.address
        derived.append(properties)
    _check_ports(config.bound_listeners, count)
    return derived


def _moved(listeners: Sequence[Listener], by: int) -> str:
    return ",".join(str(listener._replace(port=listener.port + by)) for listener in listeners)


def _check_ports(listeners: Sequence[Listener], count: int) -> None:
    """Listeners whose ports lie closer together than there are brokers would run into each other."""
    ports = sorted((listener.port, listener.name) for listener in listeners)
    for (low, name), (high, other) in pairwise(ports):
        if high - low < count:
            raise ConfigError(
                f"listeners: {name} at {low} and {other} at {high} leave no room for {count} brokers; "
                f"put their ports at least {count} apart"
            )
    if ports[-1][0] + count - 1 > 65535:
        raise ConfigError(f"listeners: port {ports[-1][0]} leaves no room for {count} brokers")


def local_ports(first: int, count: int) -> list[int]:
    """`first` and those after it; free ones that will stay free for `first` = 0."""
    if first:
        if first + count - 1 > 65535:
            raise ConfigError(f"port {first} leaves no room for {count} brokers")
        return list(range(first, first + count))
    held: list[socket.socket] = []
    try:
        for port in random.SystemRandom().sample(_STABLE_PORTS, len(_STABLE_PORTS)):
            probe = socket.socket()
            held.append(probe)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                held.pop().close()
            if len(held) == count:
                return [probe.getsockname()[1] for probe in held]
    finally:
        for probe in held:
            probe.close()
    raise ConfigError("no port is free")
