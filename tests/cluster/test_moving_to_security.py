"""A running plaintext cluster becomes a secured one, as docs/security.md tells an operator, and costs nobody
a write: producers and consumers work all the time, every acknowledged record is there at the end."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer

from headrace.cli.main import cli
from tests.broker_process import write_properties
from tests.cluster.load import Load, number_of, write
from tests.cluster_process import HeadraceCluster, eventually
from tests.ports import own_port

pytestmark = pytest.mark.timeout(600)

Settings = Mapping[str, str | int | float | bool]
PARTITIONS = 3
GROUP_SECONDS = 180
"""A member that could not say that it leaves is waited for, 45 s and more, each time."""
PASSWORD = "canary-password-91c2"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class Group:
    """A consumer in a group, in a thread of its own. What it has seen is committed before it moves."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: set[int] = set()
        self.errors: list[str] = []
        self._begin(bootstrap, {})

    def _begin(self, bootstrap: str, access: Settings) -> None:
        self._stop = threading.Event()
        consumer = Consumer(
            {
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "log_level": 0,
                **access,
                "bootstrap.servers": bootstrap,
            }
        )
        self._thread = threading.Thread(target=self._run, args=(consumer,), name="group", daemon=True)
        self._thread.start()

    def _run(self, consumer: Consumer) -> None:
        consumer.subscribe(["orders"])
        while not self._stop.is_set():
            for message in consumer.consume(1000, 0.2):
                error = message.error()
                if error is None:
                    self.seen.add(number_of(message))
                elif not error.retriable():
                    self.errors.append(str(error))
        consumer.close()

    def move(self, bootstrap: str, access: Settings) -> None:
        """Returns when the new client has read something: what the old one has read last may be the newest
        record there is, and says nothing about the new one."""
        self.end()
        before = len(self.seen)
        self._begin(bootstrap, access)
        eventually(lambda: len(self.seen) > before, GROUP_SECONDS, "the consumer reads as another user")

    def wait_for(self, number: int) -> None:
        eventually(lambda: number in self.seen, GROUP_SECONDS, f"the consumer reads {number}")

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)


class Move:
    """The steps of the guide. What each adds to server.properties stands in it."""

    def __init__(self, cluster: HeadraceCluster, directory: Path) -> None:
        self.cluster = cluster
        self.certs = directory / "certs"
        self.admin_file = directory / "admin.properties"
        self.ports = {number: (own_port(), own_port()) for number in cluster.brokers}
        """Of the listeners BROKERS and CLIENTS."""
        self.files: dict[int, dict[str, str]] = {number: {} for number in cluster.brokers}
        """What is added to each broker's file, by now."""

    @property
    def admin_bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port, _ in self.ports.values())

    @property
    def client_bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for _, port in self.ports.values())

    def access(self, user: str) -> dict[str, str | int | float | bool]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.certs / "ca.pem"),
        }

    def run(self, *command: str, stdin: str | None = None, code: int = 0, at: str = "") -> str:
        """As the administrator, who has a certificate; or without one, `at` a plaintext address."""
        where = ("-b", at) if at else ("--command-config", str(self.admin_file))
        return self._run(*command, *where, stdin=stdin, code=code)

    def _run(self, *command: str, stdin: str | None = None, code: int = 0) -> str:
        done = CliRunner().invoke(cli, command, input=stdin, prog_name="headrace")
        assert done.exit_code == code, (command, done.output, self.cluster.tails())
        return done.stdout

    def make_certificates(self) -> None:
        for number in self.cluster.brokers:
            self._cert(f"broker-{number}", "--host", "127.0.0.1")
        self._cert("admin")
        write_properties(
            self.admin_file,
            {
                "bootstrap.servers": self.admin_bootstrap,
                "security.protocol": "SSL",
                "ssl.truststore.location": str(self.certs / "ca.pem"),
                "ssl.keystore.location": str(self.certs / "admin-keystore.pem"),
            },
        )

    def _cert(self, name: str, *options: str) -> None:
        self._run("cert", "create", name, *options, "--dir", str(self.certs))

    def roll(self, load: Load, *, at: str = "") -> None:
        """Each broker in turn, and only when all replicas are in sync again."""
        for number, broker in self.cluster.brokers.items():
            broker.properties.update(self.files[number])
            self.cluster.terminate(number)
            assert self.cluster.wait_ended(number, 60) == 0
            if "listeners" in broker.properties:
                broker.port = self.ports[number][1]  # which stays to the end
            self.cluster.restart(number)
            self.run("cluster", "status", "--wait", "60", at=at)
            load.wait_flowing()

    def change(self, number: int, properties: Mapping[str, str]) -> None:
        self.files[number].update(properties)

    def change_all(self, properties: Mapping[str, str]) -> None:
        for number in self.files:
            self.change(number, properties)

    def remove_from_all(self, *names: str) -> None:
        for number, broker in self.cluster.brokers.items():
            for name in names:
                self.files[number].pop(name, None)
                broker.properties.pop(name, None)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[HeadraceCluster]:
    properties = {
        "min.insync.replicas": "2",
        "default.replication.factor": "3",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "3",
    }
    with HeadraceCluster(tmp_path / "cluster", 3, properties) as running:
        yield running


def test_no_write_fails_and_nothing_is_lost(cluster: HeadraceCluster, tmp_path: Path) -> None:
    plain = cluster.bootstrap
    ports = {number: broker.port for number, broker in cluster.brokers.items()}
    cluster.create_topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    move = Move(cluster, tmp_path)
    group = Group(plain)
    try:
        with Load(plain, "orders", PARTITIONS, rate=100) as load:
            _follow_the_guide(move, load, group, plain, ports)
        eventually(lambda: len(group.seen) == load.sent, GROUP_SECONDS, "the consumer has read everything")
    finally:
        group.end()
    found = load.judge(move.access("bob") | {"group.id": "readers"})
    assert group.errors == []
    assert group.seen == set(found)
    assert len(found) > 1000
    for number, port in ports.items():
        assert not _is_open(port), f"broker {number} has no plaintext listener any more"


def _follow_the_guide(move: Move, load: Load, group: Group, plain: str, ports: Mapping[int, int]) -> None:
    # 1. secured listeners beside the plaintext one
    move.make_certificates()
    for broker in move.cluster.brokers.values():
        broker.log_dir.chmod(0o700)
    for number, (brokers, clients) in move.ports.items():
        addresses = f"BROKERS://127.0.0.1:{brokers},CLIENTS://127.0.0.1:{clients}"
        move.change(
            number,
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{ports[number]},{addresses}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:SSL,CLIENTS:SASL_SSL",
                "inter.broker.listener.name": "PLAINTEXT",
                "headrace.inter.broker.accepted.listeners": "BROKERS",
                "ssl.keystore.location": str(move.certs / f"broker-{number}-keystore.pem"),
                "ssl.truststore.location": str(move.certs / "ca.pem"),
                "listener.name.brokers.ssl.client.auth": "required",
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            },
        )
    move.roll(load, at=plain)
    assert len(json.loads(move.run("cluster", "status", "--json"))["brokers"]) == 3

    # 2. brokers talk by TLS
    move.change_all(
        {
            "inter.broker.listener.name": "BROKERS",
            "headrace.inter.broker.accepted.listeners": "PLAINTEXT",
        }
    )
    move.roll(load)

    # 3. the authorizer, in shadow mode
    move.remove_from_all("headrace.inter.broker.accepted.listeners")
    move.change_all(
        {
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:CN=admin;User:CN=broker-1;User:CN=broker-2;User:CN=broker-3",
            "headrace.authorizer.mode": "shadow",
        }
    )
    move.roll(load)
    load.wait_flowing()
    unknown = json.loads(move.run("acl", "shadow", "-o", "json", code=1))
    assert {each["principal"] for each in unknown} == {"User:ANONYMOUS"}, "clients that have not moved"

    # 4. clients move
    for user in ("alice", "bob"):
        files = ("--client-config", str(move.certs / f"{user}.properties"))
        where = ("--client-bootstrap", move.client_bootstrap)
        move.run("user", "create", user, "--password-stdin", *files, *where, stdin=PASSWORD)
    load.move(move.client_bootstrap, move.access("alice"))
    group.move(move.client_bootstrap, move.access("bob"))
    group.wait_for(load.highest)

    # 5. what would be denied, and the least rules against it
    denied = json.loads(move.run("acl", "shadow", "-o", "json", code=1))
    assert {"User:alice", "User:bob"} < {each["principal"] for each in denied}
    for user in ("alice", "bob"):
        move.run("acl", "apply", "-", stdin=move.run("acl", "suggest", user, "-o", "json"))
        assert json.loads(move.run("acl", "shadow", user, "-o", "json")) == []
    assert "User:ANONYMOUS" in move.run("acl", "shadow", code=1)

    # 6. enforce
    move.remove_from_all("headrace.authorizer.mode")
    move.roll(load)
    with pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"):
        write(plain, "orders", 1)

    # 7. plaintext goes
    for number, (brokers, clients) in move.ports.items():
        move.change(number, {"listeners": f"BROKERS://127.0.0.1:{brokers},CLIENTS://127.0.0.1:{clients}"})
    move.roll(load)
    move.run("doctor", "security")
    group.wait_for(load.highest)


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
