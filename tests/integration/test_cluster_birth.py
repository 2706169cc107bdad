"""Clusters that have only listeners with passwords, from their birth on. ZooKeeper is spoken to by TLS, and
what is in it belongs to the brokers alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.cli.main import cli
from tests.broker_process import HeadraceProcess, Place, write_properties
from tests.cluster_process import DIES_WITH_PARENT, eventually
from tests.zookeeper_server import SecureZooKeeper

OF_ADMIN, OF_BROKERS = "canary-admin-52b1", "canary-brokers-52b2"
MECHANISM = "SCRAM-SHA-512"


def jaas(user: str, password: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{password}";'


def init(broker: HeadraceProcess, *users: str, passwords: str) -> Result:
    broker.command()  # writes its file
    words = [word for user in users for word in ("--add-scram", f"{MECHANISM}=[name={user}]")]
    file = str(broker.directory / "server.properties")
    return CliRunner().invoke(
        cli, ["cluster", "init", "--config", file, "--password-stdin", *words], input=passwords
    )


class Admin:
    def __init__(self, file: Path, bootstrap: str, properties: dict[str, str]) -> None:
        write_properties(
            file,
            {
                "bootstrap.servers": bootstrap,
                "sasl.mechanism": MECHANISM,
                "sasl.jaas.config": jaas("admin", OF_ADMIN),
                **properties,
            },
        )
        self._file = str(file)

    def run(self, *words: str, text: bytes | None = None) -> Result:
        return CliRunner().invoke(cli, [*words, "--command-config", self._file], input=text)


def test_a_broker_that_is_alone(tmp_path: Path) -> None:
    broker = HeadraceProcess(tmp_path / "broker")
    broker.properties = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{broker.port}",
        "sasl.enabled.mechanisms": MECHANISM,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    begun = init(broker, "admin", passwords=f"{OF_ADMIN}\n")
    assert begun.exit_code == 0, begun.output
    admin = Admin(tmp_path / "admin", broker.bootstrap, {"security.protocol": "SASL_PLAINTEXT"})
    with broker:
        listed = admin.run("user", "list")
        assert listed.exit_code == 0, listed.output + broker.tail()
        assert "admin" in listed.stdout
        again = init(broker, "eve", passwords="x\n")
        assert again.exit_code == 1
        assert "has begun already" in again.stderr, again.output
    with broker:
        assert admin.run("topic", "create", "t").exit_code == 0
    assert OF_ADMIN not in broker.output.read_text()


class PasswordCluster:
    """Three brokers that know each other by a password, too."""

    def __init__(self, tmp_path: Path, zookeeper: SecureZooKeeper) -> None:
        authority = zookeeper.authority
        self.brokers = [
            HeadraceProcess(
                tmp_path / f"broker-{number}", broker_id=number, place=Place(prefix=DIES_WITH_PARENT)
            )
            for number in (1, 2, 3)
        ]
        for broker in self.brokers:
            identity = authority.issue(f"broker-{broker.broker_id}", ("127.0.0.1",)).keystore
            broker.properties = {
                "zookeeper.connect": f"{zookeeper.connect}/orders",
                "zookeeper.connection.timeout.ms": "60000",
                **zookeeper.properties(),
                "listeners": f"SASL_SSL://127.0.0.1:{broker.port}",
                "inter.broker.listener.name": "SASL_SSL",
                "ssl.keystore.location": str(identity),
                "ssl.truststore.location": str(authority.path),
                "sasl.enabled.mechanisms": MECHANISM,
                "sasl.mechanism.inter.broker.protocol": MECHANISM,
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": jaas("brokers", OF_BROKERS),
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:brokers",
                "default.replication.factor": "3",
                "min.insync.replicas": "2",
                "offsets.topic.num.partitions": "1",
            }
        self.admin = Admin(
            tmp_path / "admin.properties",
            ",".join(broker.bootstrap for broker in self.brokers),
            {"security.protocol": "SASL_SSL", "ssl.truststore.location": str(authority.path)},
        )

    def tails(self) -> str:
        return "\n".join(broker.tail() for broker in self.brokers)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[PasswordCluster]:
    zookeeper = SecureZooKeeper(tmp_path / "zookeeper")
    with zookeeper.server, ExitStack() as stack:
        made = PasswordCluster(tmp_path, zookeeper)
        begun = init(made.brokers[0], "admin", "brokers", passwords=f"{OF_ADMIN}\n{OF_BROKERS}\n")
        assert begun.exit_code == 0, begun.output
        for broker in made.brokers:
            broker.launch()
            stack.callback(broker.kill)
        for broker in made.brokers:
            broker.wait_ready()
        yield made


@pytest.mark.timeout(300)
def test_three_brokers_with_passwords_alone(cluster: PasswordCluster) -> None:
    admin = cluster.admin
    created = ("topic", "create", "t", "-p", "3", "-r", "3")
    eventually(lambda: admin.run(*created).exit_code == 0, 60, cluster.tails())
    lines = b"".join(b"record %d\n" % number for number in range(30))
    assert admin.run("produce", "t", text=lines).exit_code == 0, cluster.tails()
    consumed = admin.run("consume", "t", "-c", "30", "-g", "readers")
    assert sorted(consumed.stdout_bytes.splitlines()) == sorted(lines.splitlines()), consumed.output
    eventually(lambda: admin.run("cluster", "status").exit_code == 0, 60, "all replicas are in sync")
    again = init(cluster.brokers[1], "eve", passwords="x\n")
    assert again.exit_code == 1
    assert "has begun already" in again.stderr
    cluster.brokers[0].kill()
    eventually(
        lambda: admin.run("topic", "alter", "t", "-p", "6").exit_code == 0, 60, "another controller is found"
    )
    cluster.brokers[0].start()
    eventually(lambda: admin.run("cluster", "status").exit_code == 0, 60, "the broker comes back")
    logs = "".join(broker.output.read_text() for broker in cluster.brokers)
    assert not any(secret in logs for secret in (OF_ADMIN, OF_BROKERS))
    assert "open to everybody" not in logs
