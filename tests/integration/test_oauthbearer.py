"""OAUTHBEARER on a real broker: librdkafka with tokens, an https server with the issuer's keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, NewTopic, ResourceType

from headrace.protocol.messages.metadata_request import MetadataRequest
from headrace.protocol.messages.metadata_response import MetadataResponse
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.broker_process import HeadraceProcess
from tests.guarded_broker import SECONDS, Guarded
from tests.token_issuer import (
    AUDIENCE,
    FOREIGN_KEY,
    ISSUER,
    KEYS,
    KeyServer,
    issuers_keys,
    key_set,
    public_jwk,
    token,
)
from tests.wire import Wire

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
EXPECTED = {
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
    "sasl.oauthbearer.clock.skew.seconds": "1",
}


class Issued(Guarded):
    """With OAUTHBEARER beside SCRAM. Issuer and broker have certificates of one authority."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path, **EXPECTED, **{"sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER"})
        self.server = KeyServer(self.authority.issue("issuer"))
        self.broker.properties |= {
            "sasl.oauthbearer.jwks.endpoint.url": self.server.url,
            "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": (
                f'{MODULE} required ssl.truststore.location="{self.authority.trust_store}";'
            ),
        }

    def with_token(self, text: str) -> dict[str, Any]:
        settings = self.client(mechanism="OAUTHBEARER")
        del settings["sasl.username"], settings["sasl.password"]
        return {**settings, "oauth_cb": lambda _: (text, time.time() + 300)}

    def deliver(self, text: str) -> KafkaError | None:
        """What a producer with this token is told, of its login or of its record."""
        refused: list[KafkaError] = []
        told: list[KafkaError | None] = []

        def on_error(error: KafkaError) -> None:
            if error.code() == KafkaError._AUTHENTICATION:
                refused.append(error)

        producer = Producer({**self.with_token(text), "linger.ms": 0, "error_cb": on_error})
        producer.produce("t", b"x", on_delivery=lambda error, _: told.append(error))
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and not told and not refused:
            producer.poll(0.1)
        if refused:
            producer.purge()
            producer.flush(5)
            return refused[0]
        (answer,) = told
        return answer


@pytest.fixture
def issued(tmp_path: Path) -> Iterator[Issued]:
    made = Issued(tmp_path)
    with made.server, made.broker:
        for future in made.admin.create_topics([NewTopic("t", 1, 1)]).values():
            future.result(SECONDS)
        made.allow(ResourceType.TOPIC, "t", AclOperation.WRITE)
        made.allow(ResourceType.TOPIC, "t", AclOperation.READ)
        made.allow(ResourceType.GROUP, "g", AclOperation.READ)
        yield made


def test_librdkafka_produces_and_consumes_as_the_user_of_its_token(issued: Issued) -> None:
    for algorithm in KEYS:
        assert issued.deliver(token(algorithm)) is None
    settings = {**issued.with_token(token()), "group.id": "g", "enable.auto.commit": False}
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None
        assert message.value() == b"x"
    denied = issued.deliver(token(sub="mallory"))
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, "believed, and without a right"


def test_tokens_that_are_not_good_are_refused_and_not_written_anywhere(issued: Issued) -> None:
    assert issued.deliver(token()) is None
    bad = [
        token(key=FOREIGN_KEY),
        token(iss="https://evil.example"),
        token(aud="others"),
        token(lifetime=-10),
        token(nbf=int(time.time()) + 600),
        token(headers={"kid": None}),
    ]
    for text in bad:
        refused = issued.deliver(text)
        assert refused is not None
        assert refused.code() == KafkaError._AUTHENTICATION
        assert "invalid_token" in refused.str()
    log = issued.broker.output.read_text()
    assert "its signature is wrong" in log, "the first; not every refusal of one host is told"
    for text in bad:
        assert not any(part in log for part in text.split("."))


def test_a_new_key_is_found_without_a_restart(issued: Issued) -> None:
    assert issued.deliver(token()) is None
    before = issued.server.asked
    issued.server.answer = lambda: (200, {}, key_set(public_jwk(FOREIGN_KEY, "new")))
    assert issued.deliver(token(key=FOREIGN_KEY, headers={"kid": "new"})) is None
    assert issued.server.asked == before + 1


def test_a_broker_starts_without_the_issuer_and_believes_nobody_until_it_is_there(tmp_path: Path) -> None:
    made = Issued(tmp_path)
    made.server.answer = lambda: (503, {}, b"")
    with made.server, made.broker:
        for future in made.admin.create_topics([NewTopic("t", 1, 1)]).values():
            future.result(SECONDS)
        made.allow(ResourceType.TOPIC, "t", AclOperation.WRITE)
        refused = made.deliver(token())
        assert refused is not None
        assert refused.code() == KafkaError._AUTHENTICATION
        made.server.answer = lambda: (200, {}, issuers_keys())
        until = time.monotonic() + SECONDS
        while (refused := made.deliver(token())) is not None and time.monotonic() < until:
            time.sleep(0.5)
        assert refused is None
    assert "the server of the keys answers 503" in made.broker.output.read_text()


class Session(Wire):
    def handshake(self) -> None:
        told = self.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1, SaslHandshakeResponse)
        assert told.error_code == 0

    def send_token(self, message: bytes) -> SaslAuthenticateResponse:
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=message), 1, SaslAuthenticateResponse)
        assert isinstance(answer, SaslAuthenticateResponse)
        return answer

    def log_in(self, text: str) -> SaslAuthenticateResponse:
        self.handshake()
        return self.send_token(f"n,,\x01auth=Bearer {text}\x01\x01".encode())

    def is_served(self) -> bool:
        try:
            self.ask(MetadataRequest(topics=[]), 9, MetadataResponse)
        except (EOFError, ConnectionError):
            return False
        return True


@pytest.fixture
def by_file(tmp_path: Path) -> Iterator[HeadraceProcess]:
    """Without TLS, which is asked for by name, and with keys from a file."""
    keys = tmp_path / "keys" / "issuer.json"
    keys.parent.mkdir()
    keys.write_bytes(issuers_keys())
    process = HeadraceProcess(tmp_path / "broker")
    process.properties = {
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{process.port}",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "headrace.oauthbearer.allowed.directory": str(keys.parent),
        **EXPECTED,
    }
    yield process
    process.kill()


def test_a_session_ends_with_its_token_unless_another_follows(by_file: HeadraceProcess) -> None:
    by_file.start()
    with Session(by_file.port) as ending, Session(by_file.port) as lasting:
        answers = [each.log_in(token(lifetime=4)) for each in (ending, lasting)]
        assert all(answer.error_code == 0 and 0 < answer.session_lifetime_ms <= 5000 for answer in answers)
        assert ending.is_served()
        time.sleep(2)
        assert lasting.log_in(token(lifetime=60)).error_code == 0
        time.sleep(3.2)
        assert not ending.is_served()
        assert lasting.is_served()
        other = lasting.log_in(token(lifetime=60, sub="bob"))
        assert other.error_code == 58, "a session cannot become another user's"


def test_the_refusal_is_that_of_the_rfc(by_file: HeadraceProcess) -> None:
    by_file.start()
    with Session(by_file.port) as session:
        first = session.log_in(token(lifetime=-10))
        assert (first.error_code, first.auth_bytes) == (0, b'{"status":"invalid_token"}')
        second = session.send_token(b"\x01")
        assert (second.error_code, second.error_message) == (58, '{"status":"invalid_token"}')
        assert not session.is_served()
    with Session(by_file.port) as session:
        assert session.log_in("x" * 33_000).error_code == 58, "huge"
    with Session(by_file.port) as session:
        session.log_in(token(lifetime=-10))
        assert not session.is_served(), "a refused token is no login"


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("keys/missing.json", "cannot read"),
        ("keys/../outside.json", "is not below headrace.oauthbearer.allowed.directory"),
        ("keys/empty.json", "no key of the set"),
    ],
)
def test_a_broker_without_its_file_of_keys_does_not_start(
    by_file: HeadraceProcess, tmp_path: Path, path: str, complaint: str
) -> None:
    (tmp_path / "outside.json").write_bytes(issuers_keys())
    (tmp_path / "keys" / "empty.json").write_bytes(key_set())
    by_file.properties["sasl.oauthbearer.jwks.endpoint.url"] = f"file://{tmp_path}/{path}"
    by_file.launch()
    assert by_file.process is not None
    assert by_file.process.wait(SECONDS) != 0
    assert complaint in by_file.tail()
