"""A claim to be a broker earns nothing unless the peer comes from where that broker is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from headrace.broker.cluster.broker_hosts import BrokerHosts


def made(**hosts: str) -> BrokerHosts:
    brokers = {
        number: SimpleNamespace(epoch=10 + number, endpoints=[SimpleNamespace(host=host)])
        for number, host in enumerate(hosts.values(), 1)
    }
    runtime: Any = SimpleNamespace(
        clock=SimpleNamespace(monotonic=lambda: 0.0), loop=asyncio.get_running_loop()
    )
    metadata: Any = SimpleNamespace(image=SimpleNamespace(brokers=brokers))
    return BrokerHosts(runtime, metadata)


def peer(host: str) -> Any:
    return SimpleNamespace(peer_host=host, is_link=False)


async def test_a_replica_is_believed_from_its_own_address_and_in_its_own_epoch() -> None:
    hosts = made(one="10.0.0.1", two="10.0.0.2")
    for host, broker_id, epoch, believed in (
        ("10.0.0.1", 1, 11, True),
        ("::ffff:10.0.0.1", 1, 11, True),
        ("10.0.0.2", 1, 11, False),
        ("10.0.0.9", 1, 11, False),
        ("10.0.0.1", 1, -1, False),
        ("10.0.0.1", 1, 12, False),
        ("10.0.0.1", 7, 11, False),
    ):
        connection = peer(host)
        hosts.believe_replica(connection, broker_id, epoch)
        assert connection.is_link is believed, (host, broker_id, epoch)


async def test_what_only_brokers_send_is_believed_from_any_of_them() -> None:
    hosts = made(one="10.0.0.1", two="10.0.0.2")
    for host, believed in (("10.0.0.2", True), ("10.0.0.9", False)):
        connection = peer(host)
        hosts.believe(connection)
        assert connection.is_link is believed


async def test_a_name_is_looked_up_beside_the_loop() -> None:
    hosts = made(one="localhost")
    first = peer("127.0.0.1")
    hosts.believe(first)
    assert not first.is_link, "not before it is known where that is"
    async with asyncio.timeout(10):
        while hosts._tasks:
            await asyncio.sleep(0.01)
    hosts.believe(first)
    assert first.is_link
    hosts.stop()
