"""HTTP beyond the loopback address takes TLS and a way to say who one is, or the word none."""

from __future__ import annotations

import pytest

from headrace.config.broker import BrokerConfig
from headrace.config.http_listener import HttpListener
from headrace.core.errors import ConfigError

_TLS = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/keys.pem"}
_TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}


def parsed(address: str, methods: str = "", **more: str) -> HttpListener:
    given = {"headrace.metrics.listener": address, "headrace.metrics.authentication": methods, **more}
    found = BrokerConfig.parse(given).metrics
    assert found is not None
    return found


@pytest.mark.parametrize("address", ["127.0.0.1:9404", ":9404", "localhost:9404", "[::1]:9404"])
def test_the_loopback_address_may_be_open(address: str) -> None:
    found = parsed(address)
    assert not found.methods
    assert not found.is_open


@pytest.mark.parametrize("address", ["0.0.0.0:9404", "[::]:9404", "10.0.0.7:9404", "broker1:9404"])
def test_any_other_address_stops_the_start_and_says_what_to_set(address: str) -> None:
    with pytest.raises(ConfigError, match=r"headrace\.metrics\.authentication to basic, bearer or mtls"):
        parsed(address)
    with pytest.raises(ConfigError, match="https:// before the address"):
        parsed(address, "basic")
    with pytest.raises(ConfigError, match=r"no certificate: set ssl\.keystore\.location"):
        parsed(f"https://{address}", "basic")
    with pytest.raises(ConfigError, match="basic, bearer or mtls"):
        parsed(f"https://{address}", **_TLS)
    found = parsed(f"https://{address}", "basic", **_TLS)
    assert found.security is not None


def test_everybody_is_served_only_where_that_was_asked_for_by_name() -> None:
    found = parsed("0.0.0.0:9404", "none")
    assert found.is_open
    given = {"headrace.metrics.listener": "0.0.0.0:9404", "headrace.metrics.authentication": "none"}
    assert any("served to everybody" in each for each in BrokerConfig.parse(given).warnings)


def test_certificates_of_clients_are_asked_for_where_they_count() -> None:
    both = _TLS | _TRUST
    for methods, wanted in (("mtls", "required"), ("mtls,basic", "requested"), ("basic", "none")):
        found = parsed("https://0.0.0.0:9404", methods, **both)
        assert found.security is not None
        assert found.security.client_auth == wanted
    with pytest.raises(ConfigError, match="whom to trust"):
        parsed("https://0.0.0.0:9404", "mtls", **_TLS)
    with pytest.raises(ConfigError, match="mtls needs TLS"):
        parsed("127.0.0.1:9404", "mtls", **both)


def test_its_tls_may_stand_under_a_prefix_and_is_loaded_with_the_others() -> None:
    prefixed = {f"listener.name.metrics.{name}": value for name, value in _TLS.items()}
    config = BrokerConfig.parse(
        {
            "headrace.metrics.listener": "https://127.0.0.1:9404",
            "headrace.metrics.authentication": "basic",
            **prefixed,
        }
    )
    assert config.listener_security["METRICS"].tls is not None
    assert config.metrics is not None
    assert config.metrics.address == "https://127.0.0.1:9404"


@pytest.mark.parametrize(
    ("methods", "more", "text"),
    [
        ("bearer", {}, r"bearer needs headrace\.metrics\.token\.file"),
        ("basic", {"headrace.metrics.token.file": "/t"}, "does not name bearer"),
        ("none,basic", {}, "none stands alone"),
        ("digest", {}, r"headrace\.metrics\.authentication"),
        ("", {"headrace.metrics.authentikation": "basic"}, r"headrace\.metrics\.authentikation"),
        (
            "",
            {"listeners": "METRICS://:9092", "listener.security.protocol.map": "METRICS:PLAINTEXT"},
            "METRICS",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(methods: str, more: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        parsed("127.0.0.1:9404", methods, **more)
