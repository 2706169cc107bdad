"""Three brokers that speak TLS among themselves, each with a certificate of its own for both directions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from headrace.testing.zookeeper import ZooKeeper
from tests.broker_process import HeadraceProcess, Place, write_properties
from tests.certificates import Authority
from tests.cluster_process import DIES_WITH_PARENT, eventually
from tests.tap import Tap

RECORD = b"a record that only brokers of the cluster read"
BROKERS = 3


class SecuredCluster:
    """Clients and brokers reach each broker through a tap."""

    def __init__(self, tmp_path: Path, zookeeper: str) -> None:
        self.authority = Authority(tmp_path)
        self.brokers = [
            HeadraceProcess(
                tmp_path / f"broker-{number}", broker_id=number, place=Place(prefix=DIES_WITH_PARENT)
            )
            for number in range(1, BROKERS + 1)
        ]
        self.taps = [Tap(broker.port) for broker in self.brokers]
        for broker, tap in zip(self.brokers, self.taps, strict=True):
            broker.properties = {
                "zookeeper.connect": zookeeper,
                "listeners": f"SSL://127.0.0.1:{broker.port}",
                "advertised.listeners": f"SSL://127.0.0.1:{tap.port}",
                "security.inter.broker.protocol": "SSL",
                "ssl.keystore.location": str(self.authority.issue(f"broker-{broker.broker_id}")),
                "ssl.truststore.location": str(self.authority.trust_store),
                "ssl.client.auth": "required",
                "default.replication.factor": "3",
                "min.insync.replicas": "3",
                "offsets.topic.num.partitions": "1",
            }
        config = tmp_path / "client.properties"
        write_properties(
            config,
            {
                "security.protocol": "SSL",
                "ssl.truststore.location": str(self.authority.trust_store),
                "ssl.keystore.location": str(self.authority.issue("admin")),
            },
        )
        self._config = str(config)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{tap.port}" for tap in self.taps)

    def run(self, *command: str, text: bytes | None = None) -> Result:
        return CliRunner().invoke(
            cli, (*command, "-b", self.bootstrap, "--command-config", self._config), input=text
        )

    def tails(self) -> str:
        return "\n".join(broker.tail() for broker in self.brokers)


@pytest.fixture
def cluster(tmp_path: Path, shared_zookeeper: ZooKeeper, chroot: str) -> Iterator[SecuredCluster]:
    made = SecuredCluster(tmp_path, shared_zookeeper.connect + chroot)
    with ExitStack() as stack:
        for tap in made.taps:
            stack.enter_context(tap)
        for broker in made.brokers:
            broker.launch()
            stack.callback(broker.kill)
        for broker in made.brokers:
            broker.wait_ready()
        yield made


def test_replicas_are_fetched_and_requests_forwarded_over_tls(cluster: SecuredCluster) -> None:
    eventually(
        lambda: cluster.run("topic", "create", "t", "-p", "3", "-r", "3").exit_code == 0, 60, cluster.tails()
    )
    lines = b"".join(RECORD + b" %d\n" % number for number in range(30))
    produced = cluster.run("produce", "t", text=lines)
    assert produced.exit_code == 0, produced.output + cluster.tails()
    consumed = cluster.run("consume", "t", "-c", "30", "-g", "readers")
    assert consumed.exit_code == 0, consumed.output
    assert sorted(consumed.stdout_bytes.splitlines()) == sorted(lines.splitlines())
    eventually(lambda: cluster.run("cluster", "status").exit_code == 0, 30, "all replicas are in sync")

    copies = [
        sum(each.read_bytes().count(RECORD) for each in broker.log_dir.glob("t-*/*.log"))
        for broker in cluster.brokers
    ]
    assert copies == [30] * BROKERS, "the records went from broker to broker"
    for tap in cluster.taps:
        assert len(tap.seen) > 1_000, "also a broker that leads nothing shakes hands and fetches"
        assert RECORD not in tap.seen

    cluster.brokers[0].kill()
    eventually(
        lambda: cluster.run("topic", "alter", "t", "-p", "6").exit_code == 0,
        60,
        "a controller among the two that are left, and the request forwarded to it",
    )


def test_a_broker_of_a_strange_authority_does_not_join(cluster: SecuredCluster, tmp_path: Path) -> None:
    (tmp_path / "strange").mkdir()
    stranger = HeadraceProcess(tmp_path / "broker-9", broker_id=9, place=Place(prefix=DIES_WITH_PARENT))
    stranger.properties = {
        **cluster.brokers[0].properties,
        "listeners": f"SSL://127.0.0.1:{stranger.port}",
        "advertised.listeners": f"SSL://127.0.0.1:{stranger.port}",
        "ssl.keystore.location": str(Authority(tmp_path / "strange").issue("broker-9")),
    }
    stranger.launch()
    try:
        eventually(
            lambda: "the peer's certificate is not accepted" in cluster.tails(), 60, "it is turned away"
        )
        assert '"ready"' not in stranger.tail()
    finally:
        stranger.kill()
