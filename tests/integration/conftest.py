"""What the integration tests share: real ZooKeeper servers, where they can be had."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.testing.zookeeper import ZooKeeper
from tests.zookeeper_server import zookeeper_at

_numbers = itertools.count()


@pytest.fixture(scope="session")
def shared_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """One server for all tests of a worker. Nobody kills it: who wants to, starts one of one's own."""
    with zookeeper_at(tmp_path_factory.mktemp("zookeeper")) as zookeeper:
        yield zookeeper


@pytest.fixture
def chroot() -> str:
    """A path in it that nobody has used."""
    return f"/test{next(_numbers)}"


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[Callable[[int], ZooKeeper]]:
    """Starts an ensemble of so many servers for one test, which may torment it."""
    started: list[ZooKeeper] = []

    def start(servers: int) -> ZooKeeper:
        zookeeper = zookeeper_at(tmp_path / "zookeeper", servers)
        started.append(zookeeper)
        return zookeeper.start()

    yield start
    for zookeeper in started:
        zookeeper.stop()
