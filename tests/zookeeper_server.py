"""The ZooKeeper servers that tests start, from the jars that `poe clients` brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.testing.zookeeper import ZooKeeper
from headrace.testing.zookeeper_jars import ZooKeeperMissing, find_classpath, find_java

CACHE = Path(__file__).parents[1] / ".cache" / "zookeeper"


def zookeeper_at(directory: Path, servers: int = 1) -> ZooKeeper:
    """Not yet started. Skips the test where no server can be had."""
    try:
        find_java()
        return ZooKeeper(directory, servers=servers, classpath=find_classpath(CACHE), synced=False)
    except ZooKeeperMissing as error:
        pytest.skip(f"{error}; or run `poe clients`")
