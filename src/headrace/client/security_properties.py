"""Kafka's client properties of security, as text: which there are, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headrace.client.credentials import MECHANISMS, Credentials, credentials_of
from headrace.config.broker_properties.tls import TlsListenerProperties
from headrace.config.listeners import PROTOCOLS
from headrace.config.property import Property
from headrace.config.secret import Secret
from headrace.config.tls_properties import TlsProperties, tls_properties
from headrace.core.errors import ConfigError

_TLS: Final = {
    declared.name: declared
    for declared in vars(TlsListenerProperties).values()
    if isinstance(declared, Property)
}
_OF_BROKERS: Final = frozenset(
    ("ssl.client.auth", "ssl.principal.mapping.rules", "ssl.allow.dn.changes", "ssl.allow.san.changes")
)
SECURITY_PROPERTIES: Final = (
    frozenset((*_TLS, "security.protocol", "sasl.mechanism", "sasl.jaas.config")) - _OF_BROKERS
)
_LIBRDKAFKAS: Final = {
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.location, with the key in the same file",
    "ssl.key.location": "ssl.keystore.location, with the certificates in the same file",
    "enable.ssl.certificate.verification": "ssl.endpoint.identification.algorithm",
}


def parse(properties: Mapping[str, str]) -> tuple[str, TlsProperties | None, Credentials | None]:
    """The protocol, and what it needs. Others than those of security are passed over. Raises ConfigError."""
    _require_known(properties)
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise ConfigError(f"security.protocol={protocol}: use one of {', '.join(PROTOCOLS)}")

    def value_of(declared: Property[Any]) -> Any:
        if declared.name in _OF_BROKERS or declared.name not in properties:
            return declared.default
        try:
            return declared.parse(properties[declared.name])
        except ValueError as error:
            raise ConfigError(str(error)) from None

    tls = tls_properties(value_of) if protocol.endswith("SSL") else None
    credentials = _credentials(protocol, properties) if protocol.startswith("SASL_") else None
    return protocol, tls, credentials


def _require_known(properties: Mapping[str, str]) -> None:
    """One that is passed over would leave the client less protected than its file says."""
    refuse_foreign(properties)
    for name in sorted(properties):
        if (
            name.startswith(("ssl.", "sasl.", "security."))
            and name not in SECURITY_PROPERTIES
            and properties[name].strip()
        ):
            raise ConfigError(f"unknown property {name}: correct or remove it")


def refuse_foreign(properties: Mapping[str, str]) -> None:
    """Raises ConfigError for properties of librdkafka and of brokers, and says what to set instead."""
    for name in sorted(properties):
        if name in _LIBRDKAFKAS:
            raise ConfigError(f"{name} is not a property of Kafka: set {_LIBRDKAFKAS[name]}")
        if name in _OF_BROKERS:
            raise ConfigError(f"{name} belongs to a broker's file")


def _credentials(protocol: str, properties: Mapping[str, str]) -> Credentials:
    mechanism = properties.get("sasl.mechanism", "").strip().upper()
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"security.protocol={protocol} needs sasl.mechanism: {', '.join(MECHANISMS)}"
            + (f", not {mechanism}" if mechanism else "")
        )
    jaas = properties.get("sasl.jaas.config", "").strip()
    if not jaas:
        raise ConfigError(f"security.protocol={protocol} needs sasl.jaas.config, with username and password")
    return credentials_of(mechanism, Secret(jaas))
