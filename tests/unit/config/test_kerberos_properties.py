"""GSSAPI in a broker's file."""

from __future__ import annotations

import pytest

from headrace.config.broker import BrokerConfig
from headrace.core.errors import ConfigError

MODULE = (
    'com.sun.security.auth.module.Krb5LoginModule required keyTab="/canary.keytab" principal="kafka/h@X";'
)
WHOLE = {
    "listeners": "SASL_PLAINTEXT://:9092",
    "sasl.enabled.mechanisms": "GSSAPI",
    "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": MODULE,
}
RULES = "sasl.kerberos.principal.to.local.rules"


def test_it_has_a_service_and_rules() -> None:
    kerberos = BrokerConfig.parse(WHOLE).security_of("SASL_PLAINTEXT").kerberos
    assert kerberos is not None
    assert (kerberos.service_name, kerberos.rules) == ("kafka", ("DEFAULT",))


def test_they_may_differ_by_listener() -> None:
    given = {
        **WHOLE,
        RULES: "DEFAULT",
        f"listener.name.sasl_plaintext.{RULES}": "RULE:[1:$1]/L, DEFAULT",
        "listener.name.sasl_plaintext.sasl.kerberos.service.name": "broker",
    }
    kerberos = BrokerConfig.parse(given).security_of("SASL_PLAINTEXT").kerberos
    assert kerberos is not None
    assert (kerberos.service_name, kerberos.rules) == ("broker", ("RULE:[1:$1]/L", "DEFAULT"))


def test_a_listener_without_it_has_none() -> None:
    config = BrokerConfig.parse({**WHOLE, "sasl.enabled.mechanisms": "SCRAM-SHA-512"})
    assert config.security_of("SASL_PLAINTEXT").kerberos is None


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (
            {"listener.name.sasl_plaintext.gssapi.sasl.jaas.config": ""},
            "has GSSAPI and no keytab: set listener",
        ),
        ({"sasl.kerberos.service.name": ""}, "GSSAPI needs sasl.kerberos.service.name"),
        ({"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "'GSSAPI' is not one of PLAIN"),
        ({"sasl.kerberos.service.nam": "x"}, "did you mean sasl.kerberos.service.name"),
    ],
)
def test_what_is_missing_or_cannot_be_stops_the_start(changed: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        BrokerConfig.parse({**WHOLE, **changed})


def test_a_file_of_kafkas_may_say_how_tickets_are_renewed() -> None:
    config = BrokerConfig.parse({**WHOLE, "sasl.kerberos.ticket.renew.jitter": "0.1"})
    assert [each for each in config.warnings if "sasl.kerberos.ticket.renew.jitter" in each]
