"""Where the behaviour suite runs: in this process, simulated, and on two real ZooKeeper servers per worker,
one of them with TLS and ACLs."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from headrace.config.broker import BrokerConfig
from tests.unit.coordination.worlds import LocalWorld, SimulatedWorld, World, ZooKeeperWorld
from tests.zookeeper_server import SecureZooKeeper, zookeeper_at

_numbers = itertools.count()


@pytest.fixture(scope="session")
def zookeeper_chroot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Makes connect strings, each with a chroot that nobody has used."""
    with zookeeper_at(tmp_path_factory.mktemp("zookeeper")) as zookeeper:
        yield lambda: f"{zookeeper.connect}/world{next(_numbers)}"


@pytest.fixture(scope="session")
def secure_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], ZooKeeperWorld]]:
    secured = SecureZooKeeper(tmp_path_factory.mktemp("secure-zookeeper"))
    security = BrokerConfig.parse(secured.properties()).zookeeper_security
    with secured.server:
        yield lambda: ZooKeeperWorld(f"{secured.connect}/world{next(_numbers)}", security=security)


@pytest.fixture(params=["local", "simulated", "zookeeper", "zookeeper with TLS and ACLs"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "local":
        yield LocalWorld()
        return
    if request.param == "simulated":
        yield SimulatedWorld()
        return
    if request.param == "zookeeper":
        zookeeper = ZooKeeperWorld(request.getfixturevalue("zookeeper_chroot")())
    else:
        zookeeper = request.getfixturevalue("secure_world")()
    yield zookeeper
    await zookeeper.close()
