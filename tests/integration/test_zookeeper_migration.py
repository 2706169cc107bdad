"""A cluster that runs is brought to TLS and ACLs as docs/operations.md says, and serves all the while."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from headrace.cli.main import cli
from headrace.testing.zookeeper import free_ports
from tests.broker_process import HeadraceProcess, Place
from tests.cluster_process import DIES_WITH_PARENT, eventually
from tests.zookeeper_server import SecureZooKeeper

CHROOT = "/orders"


class Cluster:
    def __init__(self, tmp_path: Path, connect: str) -> None:
        common = {
            "zookeeper.connect": connect,
            "zookeeper.connection.timeout.ms": "60000",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
        }
        self.brokers = [
            HeadraceProcess(
                tmp_path / f"broker-{number}", common, broker_id=number, place=Place(prefix=DIES_WITH_PARENT)
            )
            for number in (1, 2, 3)
        ]
        self._topics = 0

    def run(self, *words: str) -> Result:
        bootstrap = ",".join(broker.bootstrap for broker in self.brokers)
        return CliRunner().invoke(cli, [*words, "-b", bootstrap])

    def require_service(self) -> None:
        """A controller commits, and every broker hears of it."""
        self._topics += 1
        name = f"t{self._topics}"
        eventually(
            lambda: (
                self.run("topic", "create", name, "-r", "3").exit_code == 0
                or self.run("topic", "describe", name).exit_code == 0
            ),
            60,
            self.tails(),
        )
        eventually(lambda: self.run("cluster", "status").exit_code == 0, 60, self.tails())

    def roll(self, properties: dict[str, str]) -> None:
        for broker in self.brokers:
            broker.stop()
            broker.properties |= properties
            broker.start()
            self.require_service()

    def tails(self) -> str:
        return "\n".join(broker.tail() for broker in self.brokers)


@pytest.mark.timeout(400)
def test_a_cluster_is_migrated_while_it_serves(tmp_path: Path) -> None:
    (plain,) = free_ports("127.0.0.1", 1)
    zookeeper = SecureZooKeeper(tmp_path / "zookeeper", f"clientPort={plain}", "clientPortAddress=127.0.0.1")
    with zookeeper.server, ExitStack() as stack:
        cluster = Cluster(tmp_path, f"127.0.0.1:{plain}{CHROOT}")
        for broker in cluster.brokers:
            broker.launch()
            stack.callback(broker.kill)
        for broker in cluster.brokers:
            broker.wait_ready()
        cluster.require_service()
        to_tls = {**zookeeper.properties(), "zookeeper.connect": zookeeper.connect + CHROOT}
        cluster.roll({**to_tls, "zookeeper.set.acl": "false"})
        cluster.roll({"zookeeper.set.acl": "true"})
        assert "headrace cluster secure-zookeeper --config FILE" in cluster.brokers[-1].output.read_text()
        file = str(cluster.brokers[0].directory / "server.properties")
        done = CliRunner().invoke(cli, ["cluster", "secure-zookeeper", "--config", file])
        assert done.exit_code == 0, done.output
        cluster.require_service()
        client = KazooClient(hosts=f"127.0.0.1:{plain}")
        client.start(30)
        try:
            for node in ("", "/controller", "/controller_epoch", "/metadata/log", "/brokers/ids/1"):
                with pytest.raises(NoAuthError):
                    client.get(CHROOT + node)
        finally:
            client.stop()
            client.close()
        cluster.brokers[0].kill()  # whoever it was: another takes over, and it comes back
        cluster.brokers[0].start()
        cluster.require_service()
