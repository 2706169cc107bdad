"""A broker over TLS: our commands and other people's clients, what is on the wire, new certificates."""

from __future__ import annotations

import signal
import socket
import ssl
import warnings
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer

from headrace.cli.main import cli
from tests.broker_process import HeadraceProcess, write_properties
from tests.certificates import Authority
from tests.cluster_process import eventually
from tests.tap import Tap

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, KafkaProducer

CANARY = "canary-b12f"
RECORD = b"a record that nobody on the way can read"
SECONDS = 60


class Secured:
    """A broker with certificates for both sides, and a tap before its port."""

    def __init__(self, tmp_path: Path) -> None:
        self.authority = Authority(tmp_path)
        self.store = self.authority.as_pkcs12(self.authority.issue("broker"), CANARY)
        self.broker = HeadraceProcess(tmp_path / "broker")
        self.tap = Tap(self.broker.port)
        self.broker.properties = {
            "listeners": f"SSL://127.0.0.1:{self.broker.port}",
            "advertised.listeners": f"SSL://127.0.0.1:{self.tap.port}",
            "headrace.metrics.listener": "127.0.0.1:0",
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.store),
            "ssl.keystore.password": CANARY,
            "ssl.truststore.location": str(self.authority.trust_store),
            "ssl.client.auth": "required",
        }
        self.alice = self.authority.issue("alice")

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.tap.port}"

    @property
    def librdkafka(self) -> dict[str, str | int]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority.trust_store),
            "ssl.certificate.location": str(self.alice),
            "ssl.key.location": str(self.alice),
        }

    def client_file(self, identity: Path | None) -> str:
        path = self.authority.directory / "client.properties"
        given = {"security.protocol": "SSL", "ssl.truststore.location": str(self.authority.trust_store)}
        write_properties(
            path, given if identity is None else {**given, "ssl.keystore.location": str(identity)}
        )
        return str(path)

    def run(self, *command: str, identity: Path | None = None, text: bytes | None = None) -> Result:
        config = self.client_file(identity or self.alice)
        return CliRunner().invoke(
            cli, (*command, "-b", self.bootstrap, "--command-config", config), input=text
        )

    def replace_certificate(self) -> None:
        self.authority.as_pkcs12(self.authority.issue("broker"), CANARY)

    def shown_certificate(self) -> bytes:
        """What a new connection is shown."""
        context = ssl.create_default_context(cafile=str(self.authority.trust_store))
        context.load_cert_chain(str(self.alice))
        with (
            socket.create_connection(("127.0.0.1", self.broker.port)) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1") as sock,
        ):
            shown = sock.getpeercert(binary_form=True)
        assert shown is not None
        return shown


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    made = Secured(tmp_path)
    with made.broker, made.tap:
        yield made


def test_records_go_through_tls_and_cannot_be_read_on_the_way(secured: Secured) -> None:
    produced = secured.run("produce", "t", text=RECORD + b" 0\n" + RECORD + b" 1\n")
    assert produced.exit_code == 0, produced.output
    delivered: list[object] = []
    producer = Producer({**secured.librdkafka, "linger.ms": 0})
    producer.produce("t", RECORD + b" 2", on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(SECONDS) == 0
    assert delivered == [None]
    python = {
        "bootstrap_servers": secured.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": str(secured.authority.trust_store),
        "ssl_certfile": str(secured.alice),
        "ssl_keyfile": str(secured.alice),
    }
    with closing(KafkaProducer(**python)) as another:
        another.send("t", RECORD + b" 3").get(SECONDS)
    expected = [RECORD + b" %d" % number for number in range(4)]

    with closing(
        Consumer({**secured.librdkafka, "group.id": "g", "auto.offset.reset": "earliest"})
    ) as reader:
        reader.subscribe(["t"])
        assert sorted(message.value() or b"" for message in reader.consume(4, SECONDS)) == expected
    with closing(KafkaConsumer("t", auto_offset_reset="earliest", **python)) as one:
        assert sorted(next(one).value for _ in range(4)) == expected
    consumed = secured.run("consume", "t", "-c", "4")
    assert consumed.exit_code == 0, consumed.output
    assert sorted(consumed.stdout_bytes.splitlines()) == expected

    seen = secured.tap.seen
    assert len(seen) > 10_000
    assert RECORD not in seen
    assert b"librdkafka" not in seen
    assert any(RECORD in each.read_bytes() for each in secured.broker.log_dir.rglob("*.log")), (
        "it was written so"
    )


def test_a_new_certificate_is_taken_without_a_restart(secured: Secured) -> None:
    first = secured.shown_certificate()
    delivered: list[object] = []
    producer = Producer({**secured.librdkafka, "linger.ms": 0})
    producer.produce("t", b"before", on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(SECONDS) == 0
    process = secured.broker.pid

    secured.replace_certificate()
    eventually(lambda: secured.shown_certificate() != first, 30, "the file is looked at every ten seconds")
    second = secured.shown_certificate()
    secured.replace_certificate()
    secured.broker.signal(signal.SIGHUP)
    eventually(lambda: secured.shown_certificate() != second, 5, "SIGHUP asks for it at once")
    third = secured.shown_certificate()
    secured.store.write_bytes(b"half")
    secured.broker.signal(signal.SIGHUP)
    eventually(lambda: "the old one stays" in secured.broker.tail(), 5, "a bad file is told of")
    assert secured.shown_certificate() == third

    producer.produce("t", b"after", on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(SECONDS) == 0
    assert delivered == [None, None]
    assert secured.broker.pid == process
    assert secured.broker.running


def test_who_is_not_accepted_is_told_why_on_both_sides(secured: Secured, tmp_path: Path) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    expired = secured.authority.issue("late", expires=past, begins=past - timedelta(days=9))
    refused = secured.run("topic", "list", identity=expired)
    assert refused.exit_code == 1
    assert "our certificate has expired: renew it" in refused.stderr
    eventually(
        lambda: "certificate is not accepted: certificate has expired" in secured.broker.tail(), 10, "a line"
    )

    nobody = CliRunner().invoke(
        cli, ("topic", "list", "-b", secured.bootstrap, "--command-config", secured.client_file(None))
    )
    assert "wants a certificate: set ssl.keystore.location" in nobody.stderr

    plain = CliRunner().invoke(cli, ("topic", "list", "-b", secured.bootstrap))
    assert plain.exit_code == 1
    assert "--command-config" in plain.stderr
    with socket.create_connection(("127.0.0.1", secured.broker.port)) as raw:
        raw.sendall(b"\0\0\0\x10" + bytes(16))
        assert raw.recv(100)[:1] in (b"", b"\x15"), "an alert, or nothing"


def test_secrets_are_shown_nowhere(secured: Secured) -> None:
    described = secured.run("config", "list", "--broker", "1", "--json")
    assert described.exit_code == 0, described.output
    assert "ssl.keystore.password" in described.stdout
    secured.broker.stop()
    written = [each for each in secured.broker.log_dir.rglob("*") if each.is_file()]
    texts = [
        described.output,
        secured.broker.tail(),
        *(each.read_bytes().decode("latin-1") for each in written),
    ]
    assert not [text[:200] for text in texts if CANARY in text]


def test_an_expired_certificate_stops_the_start(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    past = datetime.now(UTC) - timedelta(days=1)
    identity = secured.authority.issue("broker", expires=past, begins=past - timedelta(days=9))
    secured.authority.as_pkcs12(identity, CANARY)
    with (
        secured.tap,
        pytest.raises(RuntimeError, match=r"the listener SSL: its certificate \(.*CN=broker.*\) has expired"),
    ):
        secured.broker.start()


def test_tls_at_a_listener_without_it_is_told_with_the_cure(tmp_path: Path) -> None:
    with HeadraceProcess(tmp_path / "broker") as broker:
        config = tmp_path / "client.properties"
        write_properties(config, {"security.protocol": "SSL"})
        result = CliRunner().invoke(
            cli, ("topic", "list", "-b", broker.bootstrap, "--command-config", str(config))
        )
        assert result.exit_code == 1
        assert "does this listener speak TLS?" in result.stderr
        eventually(lambda: "the peer speaks TLS and this listener does not" in broker.tail(), 10, "a line")
