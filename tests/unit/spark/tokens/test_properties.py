"""What tasks get that log in with a token, and what they do not get."""

from __future__ import annotations

import pytest

from headrace.config.secret import Secret
from headrace.core.errors import ConfigError
from headrace.spark.kafka_properties import KafkaProperties
from headrace.spark.tokens.properties import mechanism_of, token_bootstrap, token_properties

_CANARY = "canary-2d91"
_HMAC = Secret("aG1hYw==+/")
_TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}
_BY_PASSWORD = {
    "bootstrap.servers": "b:9092",
    "client.id": "billing",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="alice" password="{_CANARY}";'
    ),
    **_TRUST,
}
_BY_CERTIFICATE = {
    "bootstrap.servers": "b:9093",
    "security.protocol": "ssl",
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.location": f"/{_CANARY}.p12",
    "ssl.keystore.password": _CANARY,
    "ssl.keystore.key": _CANARY,
    "ssl.keystore.certificate.chain": _CANARY,
    "ssl.key.password": _CANARY,
    **_TRUST,
}
_BY_OAUTH = {
    "bootstrap.servers": "b:9094",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": f"https://{_CANARY}",
    "sasl.login.callback.handler.class": _CANARY,
}


def _for_tasks(given: dict[str, str], bootstrap: str | None = None) -> KafkaProperties:
    kafka = KafkaProperties(given)
    where, mechanism = token_bootstrap(kafka, bootstrap), mechanism_of(kafka, None)
    return token_properties(kafka, "the-id", _HMAC, bootstrap=where, mechanism=mechanism)


@pytest.mark.parametrize(
    ("given", "bootstrap", "protocol", "mechanism"),
    [
        (_BY_PASSWORD, "b:9092", "SASL_SSL", "SCRAM-SHA-256"),
        (_BY_CERTIFICATE, "b:9092", "SASL_SSL", "SCRAM-SHA-512"),
        (_BY_OAUTH, "b:9094", "SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ],
)
def test_tasks_log_in_with_the_token_and_nothing_else(
    given: dict[str, str], bootstrap: str, protocol: str, mechanism: str
) -> None:
    found = _for_tasks(given, None if given["bootstrap.servers"] == bootstrap else bootstrap)
    assert _CANARY not in str(dict(found))
    assert (found.bootstrap, found["security.protocol"]) == (bootstrap, protocol)
    assert {name: found[name] for name in found if "trust" in name} == {
        name: given[name] for name in given if "trust" in name
    }
    credentials = found.security().credentials
    assert credentials is not None
    assert credentials.is_token
    assert (credentials.mechanism, credentials.username) == (mechanism, "the-id")
    assert credentials.password == _HMAC


def test_what_is_not_about_security_stays() -> None:
    assert _for_tasks(_BY_PASSWORD)["client.id"] == "billing"


def test_a_token_is_shown_nowhere() -> None:
    found = _for_tasks(_BY_PASSWORD)
    assert _HMAC.reveal() not in f"{found!r} {found}"
    assert _HMAC.reveal() not in found.conceal(f"cannot log in with {_HMAC.reveal()}")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"bootstrap.servers": "b:1"}, "PLAINTEXT: a delegation token is for somebody who has logged in"),
        (_BY_CERTIFICATE, 'give bootstrap="host:port" of the one with SASL_SSL'),
    ],
)
def test_a_listener_that_takes_no_token_is_refused(given: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        _for_tasks(given)


def test_a_mechanism_that_takes_no_token_is_refused() -> None:
    with pytest.raises(ConfigError, match="mechanism PLAIN: delegation tokens need one of SCRAM-SHA-256"):
        mechanism_of(KafkaProperties(_BY_PASSWORD), "PLAIN")
    assert mechanism_of(KafkaProperties(_BY_PASSWORD), "SCRAM-SHA-512") == "SCRAM-SHA-512"
