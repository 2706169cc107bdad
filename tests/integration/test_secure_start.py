"""Five minutes to a protected cluster, as docs/security.md tells them: on real processes, with librdkafka."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from headrace.client.security import ClientSecurity
from headrace.testing.cluster import Cluster
from headrace.testing.zookeeper_jars import CLASSPATH_VARIABLE, ZooKeeperMissing, find_classpath
from tests.cluster_process import eventually
from tests.host import Stopwatch
from tests.zookeeper_server import CACHE

SECONDS = 120.0
FIVE_MINUTES = 300.0
HEADRACE = (sys.executable, "-m", "headrace.cli.main")


@contextmanager
def up(directory: Path, *more: str) -> Iterator[str]:
    """`headrace up --secure`; its address, once it is ready."""
    log = directory.with_name("up.log")
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [*HEADRACE, "up", "--secure", "--dir", str(directory), "--port", "0", *more],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        assert line.startswith("ready bootstrap="), log.read_text()
        yield line.removeprefix("ready bootstrap=")
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def headrace(directory: Path, *words: str, code: int = 0, stdin: str = "") -> str:
    """As a person types it who has named the administrator's file once."""
    environment = {**os.environ, "HEADRACE_COMMAND_CONFIG": str(directory / "client.properties")}
    environment.pop("HEADRACE_BOOTSTRAP", None)
    done = subprocess.run(
        [*HEADRACE, *words], env=environment, input=stdin, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == code, (words, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done.stdout


def config_of(file: Path) -> dict[str, str]:
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def produce(config: dict[str, str], topic: str, value: bytes) -> KafkaError | None:
    failures: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        failures.append(error)

    producer = Producer({**config, "message.timeout.ms": 30_000})
    producer.produce(topic, value, on_delivery=delivered)
    assert producer.flush(SECONDS) == 0
    return failures[0]


def consume(config: dict[str, str], topic: str) -> bytes | KafkaError:
    """The first record, or what is said about the topic: the group is asked about besides."""
    consumer = Consumer({**config, "group.id": "readers", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    deadline = time.monotonic() + SECONDS
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            error = None if message is None else message.error()
            if message is not None and (
                error is None or error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED
            ):
                return error or message.value() or b""
        raise AssertionError("nothing came")
    finally:
        consumer.close()


@pytest.mark.timeout(300)
def test_five_minutes(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    data, file = tmp_path / "data", tmp_path / "alice.properties"
    watch = Stopwatch()
    times: dict[str, float] = {}

    def took(step: str) -> None:
        times[step] = watch.seconds - sum(times.values())

    with up(data):
        took("up --secure")
        headrace(data, "topic", "create", "t")
        created = headrace(data, "user", "create", "alice", "--client-config", str(file))
        took("user create")
        headrace(data, "acl", "grant", "alice", "produce", "t")
        took("acl grant produce")
        alice = config_of(file.with_name("alice-librdkafka.properties"))
        assert produce(alice, "t", b"hello") is None
        denied = consume(alice, "t")
        assert isinstance(denied, KafkaError)
        assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        took("produce, and be denied")
        told = headrace(data, "acl", "explain", "alice", "consume", "t", code=1)
        assert "no: User:alice may not READ topic t" in told
        assert "headrace acl add --allow-principal User:alice --operation read --topic t" in told
        headrace(data, "acl", "grant", "alice", "consume", "t", "--group", "readers")
        assert consume(alice, "t") == b"hello"
        took("explain, grant consume, consume")
        headrace(data, "acl", "explain", "alice", "consume", "t")
        headrace(data, "acl", "lint")
    print(" ".join(f"{step}: {seconds:.1f} s;" for step, seconds in times.items()))
    record_property("steps", times)
    assert sum(times.values()) < FIVE_MINUTES
    password = config_of(data / "librdkafka.properties")["sasl.password"]
    secrets = (password, created.split("password ")[1].split()[0])
    log = (tmp_path / "up.log").read_text()
    assert not any(secret in log for secret in secrets)


@pytest.mark.timeout(300)
def test_a_second_start_finds_everything_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    certificates = data / "certs"
    with up(data):
        headrace(data, "user", "create", "alice")
        before = {path.name: path.read_bytes() for path in certificates.glob("*.pem")}
        password = config_of(data / "librdkafka.properties")["sasl.password"]
    with up(data):
        after = {path.name: path.read_bytes() for path in certificates.glob("*.pem")}
        assert after == before
        assert config_of(data / "librdkafka.properties")["sasl.password"] == password
        assert [line.split()[0] for line in headrace(data, "user", "list").splitlines()] == [
            "NAME",
            "admin",
            "alice",
        ]


@pytest.mark.timeout(300)
def test_a_lost_password_is_replaced_with_the_certificate(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data):
        pass
    (data / "client.properties").unlink()
    with up(data) as bootstrap:
        log = tmp_path / "up.log"
        eventually(lambda: "the password of admin is not in" in log.read_text(), SECONDS, "it is told")
        certificate = str(data / "certs" / "admin.properties")
        words = ("user", "passwd", "admin", "--command-config", certificate, "--client-bootstrap", bootstrap)
        files = ("--client-config", str(data / "client.properties"))
        subprocess.run([*HEADRACE, *words, *files], check=True, capture_output=True, timeout=SECONDS)
        assert "admin" in headrace(data, "user", "list")


@pytest.mark.timeout(300)
def test_three_brokers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        monkeypatch.setenv(CLASSPATH_VARIABLE, find_classpath(CACHE, for_tls=True))
    except ZooKeeperMissing as error:
        pytest.skip(f"{error}; or run `poe clients`")
    data = tmp_path / "data"
    with up(data, "--brokers", "3") as bootstrap:
        assert bootstrap.count(":") == 3
        headrace(data, "topic", "create", "t", "-p", "3", "-r", "3")
        headrace(data, "user", "create", "alice", "--client-config", str(tmp_path / "alice.properties"))
        headrace(data, "acl", "grant", "alice", "produce", "t")
        headrace(data, "acl", "grant", "alice", "consume", "t", "--group", "readers")
        alice = config_of(tmp_path / "alice-librdkafka.properties")
        assert produce({**alice, "acks": "all"}, "t", b"hello") is None
        (topic,) = json.loads(headrace(data, "topic", "describe", "t", "--json"))
        assert [len(each["isr"]) for each in topic["partitions"]] == [3, 3, 3]  # brokers fetch over TLS
        headrace(data, "acl", "revoke", "alice", "produce", "t")
        denied = produce(alice, "t", b"again")
        assert denied is not None
        assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        _require_closed_zookeeper(data, (tmp_path / "up.log").read_text())


def _require_closed_zookeeper(data: Path, log: str) -> None:
    """It speaks TLS alone. Also who has a certificate of the same authority reads nothing there."""
    (address,) = re.findall(r"ZooKeeper serves at (\S+) with TLS", log)
    assert "open to everybody" not in log
    identity = str(data / "certs" / "admin-keystore.pem")
    trusted = str(data / "certs" / "ca.pem")
    with closing(socket.create_connection((address.split(":")[0], int(address.split(":")[1])))) as plain:
        plain.settimeout(30)
        plain.sendall(b"srvr")
        assert b"Zookeeper version" not in plain.recv(100)
    client = KazooClient(hosts=address, use_ssl=True, ca=trusted, certfile=identity, keyfile=identity)
    client.start(SECONDS)
    try:
        for path in ("/", "/cluster/id", "/metadata/log", "/controller_epoch"):
            with pytest.raises(NoAuthError):
                client.get(path)
    finally:
        client.stop()
        client.close()
    others = [path for path in data.rglob("*") if path.stat().st_mode & 0o077]
    assert [path.name for path in others if path.parent.name != "certs"] == []


def test_the_fixture_is_protected(headrace_secure: Cluster) -> None:
    admin = headrace_secure.client_config
    assert admin["security.protocol"] == "SASL_SSL"
    assert produce(admin, "orders", b"tea") is None
    assert consume(admin, "orders") == b"tea"
    wrong = Producer({**admin, "sasl.password": "wrong"})
    with pytest.raises(KafkaException):
        wrong.list_topics(timeout=3)
    plain = Producer({"bootstrap.servers": headrace_secure.bootstrap, "reconnect.backoff.ms": 5000})
    with pytest.raises(KafkaException):
        plain.list_topics(timeout=3)
    headrace_secure.restart()
    assert consume(headrace_secure.client_config, "orders") == b"tea"
    kept = ClientSecurity.read(str(headrace_secure.client_files.java)).credentials
    assert kept is not None
    assert kept.password.reveal() == admin["sasl.password"]


def test_a_plain_cluster_has_a_config_and_no_files() -> None:
    with Cluster() as cluster:
        assert cluster.client_config == {"bootstrap.servers": cluster.bootstrap}
        with pytest.raises(Exception, match="not secure"):
            _ = cluster.client_files
