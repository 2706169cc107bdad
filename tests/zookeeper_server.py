"""The ZooKeeper servers that tests start, from the jars that `poe clients` brings."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.client.certificates import Authority
from headrace.testing.zookeeper import ServerTls, ZooKeeper
from headrace.testing.zookeeper_jars import ZooKeeperMissing, find_classpath, find_java

CACHE = Path(__file__).parents[1] / ".cache" / "zookeeper"


def zookeeper_at(directory: Path, servers: int = 1) -> ZooKeeper:
    """Not yet started. Skips the test where no server can be had."""
    try:
        find_java()
        return ZooKeeper(directory, servers=servers, classpath=find_classpath(CACHE), synced=False)
    except ZooKeeperMissing as error:
        pytest.skip(f"{error}; or run `poe clients`")


class SecureZooKeeper:
    """A server with TLS, and the authority whose certificates it takes, as `headrace cert` makes them."""

    def __init__(self, directory: Path, *settings: str) -> None:
        """Not yet started. Skips the test where no server can be had."""
        self.directory = directory
        self.authority = Authority.at(directory / "certs")
        self.tls = ServerTls(
            self.authority.issue("zookeeper", ("127.0.0.1",)).keystore,
            self.authority.path,
            self.authority.issue("brokers", ()).keystore,
        )
        try:
            find_java()
            classpath = find_classpath(CACHE, for_tls=True)
        except ZooKeeperMissing as error:
            pytest.skip(str(error))
        self.server = ZooKeeper(
            directory / "server", classpath=classpath, synced=False, tls=self.tls, settings=settings
        )

    @property
    def connect(self) -> str:
        return self.server.connect

    def properties(self, identity: Path | None = None, **more: str) -> dict[str, str]:
        """Of a broker whose nodes belong to its certificate. `more` has _ for the dots of names."""
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": str(identity or self.tls.own),
            "zookeeper.ssl.truststore.location": str(self.tls.truststore),
            "zookeeper.set.acl": "true",
            **{name.replace("_", "."): value for name, value in more.items()},
        }
