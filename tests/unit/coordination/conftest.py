"""Where the behaviour suite runs: in this process, simulated, and on a real ZooKeeper server per worker."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.unit.coordination.worlds import LocalWorld, SimulatedWorld, World, ZooKeeperWorld
from tests.zookeeper_server import zookeeper_at

_numbers = itertools.count()


@pytest.fixture(scope="session")
def zookeeper_chroot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Makes connect strings, each with a chroot that nobody has used."""
    with zookeeper_at(tmp_path_factory.mktemp("zookeeper")) as zookeeper:
        yield lambda: f"{zookeeper.connect}/world{next(_numbers)}"


@pytest.fixture(params=["local", "simulated", "zookeeper"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "local":
        yield LocalWorld()
        return
    if request.param == "simulated":
        yield SimulatedWorld()
        return
    zookeeper = ZooKeeperWorld(request.getfixturevalue("zookeeper_chroot")())
    yield zookeeper
    await zookeeper.close()
