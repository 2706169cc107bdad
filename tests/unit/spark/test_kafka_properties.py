"""The properties that users give: Kafka's names, and no secret in anything that is shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from headrace.client.client_files import Access, ClientFiles
from headrace.config.secret import Secret
from headrace.core.errors import ConfigError
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.source.options import SourceRefused, Wish

_CANARY = "canary-7f3a"
_JAAS = (
    f'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="{_CANARY}";'
)
_SECURED = {
    "bootstrap.servers": "b:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": _JAAS,
    "ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----{_CANARY}",
    "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----",
    "ssl.truststore.password": _CANARY,
}


def test_spark_s_prefix_may_stand_before_a_name() -> None:
    found = KafkaProperties({f"kafka.{name}": value for name, value in _SECURED.items()})
    assert dict(found) == _SECURED
    assert found.options == {f"kafka.{name}": value for name, value in _SECURED.items()}


def test_nothing_secret_is_shown() -> None:
    found = KafkaProperties(_SECURED)
    assert _CANARY not in f"{found!r} {found}"
    assert "b:9092" in repr(found)
    assert _CANARY not in repr(Wish(("t",), _SECURED))


def test_it_goes_to_tasks_whole() -> None:
    assert dict(pickle.loads(pickle.dumps(KafkaProperties(_SECURED)))) == _SECURED


def test_the_words_of_others_are_cleared_of_secrets() -> None:
    found = KafkaProperties(_SECURED)
    said = f"cannot load {_SECURED['ssl.keystore.key']}, nor log in with {_CANARY} at b:9092"
    assert found.conceal(said) == "cannot load [hidden], nor log in with [hidden] at b:9092"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"sasl.password": _CANARY}, r"sasl\.password is not a property of Kafka: set sasl\.jaas\.config"),
        ({"ssl.ca.location": "/ca.pem"}, r"set ssl\.truststore\.location"),
        ({"ssl.client.auth": "required"}, "belongs to a broker"),
        ({"client.id": "a", "kafka.client.id": "b"}, r"client\.id is given with and without kafka\."),
        ({"sasl.jaas.config": f"Module required password={_CANARY} more;"}, "not name=value"),
    ],
)
def test_a_mistake_is_named_without_its_value(wrong: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as refused:
        KafkaProperties(wrong)
    assert _CANARY not in str(refused.value)
    with pytest.raises(SourceRefused, match=text):
        Wish(("t",), {"bootstrap.servers": "b:9092", **wrong})


def test_a_client_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    access = Access(
        "b:9092", "SASL_SSL", "SCRAM-SHA-512", "alice", Secret('back\\slash"\u00e9'), tmp_path / "ca"
    )
    ClientFiles.beside(tmp_path / "alice.properties").write(access)
    found = KafkaProperties.read(tmp_path / "alice.properties")
    security = found.security()
    assert found.bootstrap == "b:9092"
    assert security.credentials is not None
    assert security.credentials.password == access.password


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.properties: No such file"):
        KafkaProperties.read(tmp_path / "no.properties")
