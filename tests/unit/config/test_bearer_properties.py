"""OAUTHBEARER in a broker's file: whatever is missing stops the start."""

from __future__ import annotations

import pytest

from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError

WHOLE = {
    "listeners": "SASL_PLAINTEXT://:9092",
    "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "https://issuer.example/keys",
    "sasl.oauthbearer.expected.issuer": "https://issuer.example",
    "sasl.oauthbearer.expected.audience": "kafka,other",
}
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


def test_a_whole_file() -> None:
    bearer = BrokerConfig.parse(WHOLE).security_of("SASL_PLAINTEXT").bearer
    assert bearer is not None
    assert (bearer.url, bearer.file) == ("https://issuer.example/keys", None)
    assert (bearer.issuer, bearer.audience) == ("https://issuer.example", ("kafka", "other"))
    assert (bearer.name_claim, bearer.clock_skew_ms, bearer.refresh_ms) == ("sub", 30_000, 3_600_000)


def test_a_listener_may_have_its_own() -> None:
    own = {"listener.name.sasl_plaintext.sasl.oauthbearer.expected.issuer": "https://own.example"}
    bearer = BrokerConfig.parse({**WHOLE, **own}).security_of("SASL_PLAINTEXT").bearer
    assert bearer is not None
    assert bearer.issuer == "https://own.example"


@pytest.mark.parametrize(
    "name",
    [
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.sub.claim.name",
    ],
)
@pytest.mark.parametrize("is_empty", [True, False])
def test_what_is_missing_stops_the_start(name: str, is_empty: bool) -> None:
    given = {**WHOLE, name: " "}
    if not is_empty and name in WHOLE:
        del given[name]
    with pytest.raises(ConfigError, match=rf"SASL_PLAINTEXT: OAUTHBEARER needs {name}"):
        BrokerConfig.parse(given)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://issuer.example/keys", "https: or from a file:"),
        ("ftp://issuer.example/keys", "https: or from a file:"),
        ("/etc/keys.json", "https: or from a file:"),
        ("https:///keys", "has a host"),
        ("https://CANARY:CANARY@issuer.example/keys", "no user or password"),
        ("https://issuer.example:x/keys", "not a URL"),
        ("https://[::1/keys", "not a URL"),
        ("file:///etc/keys.json", "headrace.oauthbearer.allowed.directory, which is not set"),
        ("file://elsewhere/etc/keys.json", "whole path"),
        ("file:keys.json", "whole path"),
    ],
)
def test_keys_come_from_where_nobody_can_change_them(url: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as raised:
        BrokerConfig.parse({**WHOLE, "sasl.oauthbearer.jwks.endpoint.url": url})
    assert "CANARY" not in str(raised.value)


def test_a_file_below_an_allowed_directory() -> None:
    given = {
        **WHOLE,
        "sasl.oauthbearer.jwks.endpoint.url": "file:///etc/headrace/my%20keys.json",
        "headrace.oauthbearer.allowed.directory": "/etc/headrace",
    }
    bearer = BrokerConfig.parse(given).security_of("SASL_PLAINTEXT").bearer
    assert bearer is not None
    assert (bearer.file, bearer.directory) == ("/etc/headrace/my keys.json", "/etc/headrace")


def test_tokens_are_not_sent_where_everybody_can_read_them() -> None:
    given = {**WHOLE, "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER"}
    del given["listener.name.sasl_plaintext.sasl.enabled.mechanisms"]
    with pytest.raises(ConfigError, match=r"would carry tokens .* \(OAUTHBEARER over SASL_PLAINTEXT\)"):
        BrokerConfig.parse(given)


def test_brokers_have_no_tokens_of_their_own() -> None:
    with pytest.raises(
        ConfigError, match=r"sasl\.mechanism\.inter\.broker\.protocol.*is not one of PLAIN, SCR"
    ):
        BrokerConfig.parse({**WHOLE, "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"})


@pytest.mark.parametrize(
    ("name", "value", "is_accepted"),
    [
        ("listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class", HANDLER, True),
        ("listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class", "x.Y", False),
        ("listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class", HANDLER, False),
        ("sasl.oauthbearer.jwt.validator.class", HANDLER.rpartition(".")[0] + ".DefaultJwtValidator", True),
        ("sasl.oauthbearer.jwt.validator.class", "com.example.Validator", False),
        ("sasl.oauthbearer.jwt.retriever.class", "com.example.Retriever", False),
        ("sasl.oauthbearer.expected.isuer", "x", False),
        ("sasl.oauthbearer.allow.unverified.issuer", "true", False),
        ("headrace.oauthbearer.allowed.directry", "/etc", False),
        (
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config",
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
            True,
        ),
    ],
)
def test_kafkas_own_classes_may_be_named_and_no_others(name: str, value: str, is_accepted: bool) -> None:
    if is_accepted:
        config = BrokerConfig.parse({**WHOLE, name: value})
        assert not [each for each in config.warnings if name in each]
    else:
        with pytest.raises(ConfigError, match=name):
            BrokerConfig.parse({**WHOLE, name: value})
