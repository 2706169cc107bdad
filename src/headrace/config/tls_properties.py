"""The `ssl.` properties of one side of a connection, checked together. Nothing is read from disk here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from headrace.config.broker_properties.tls import TlsListenerProperties as Declared
from headrace.config.property import Property
from headrace.config.secret import Secret
from headrace.core.errors import ConfigError

ValueOf = Callable[[Property[Any]], Any]
"""The value of a property for one listener, or for one client."""


@dataclass(frozen=True, slots=True)
class KeyStore:
    """Who we are. Either a file or texts; `Secret` keeps them out of every `repr`."""

    type: str
    location: str | None
    password: Secret | None
    key_password: Secret | None
    key: Secret | None
    certificate_chain: Secret | None

    @property
    def is_there(self) -> bool:
        return bool(self.location or self.key)


@dataclass(frozen=True, slots=True)
class TrustStore:
    """Whom we trust."""

    type: str
    location: str | None
    password: Secret | None
    certificates: Secret | None

    @property
    def is_there(self) -> bool:
        return bool(self.location or self.certificates)


@dataclass(frozen=True, slots=True)
class TlsProperties:
    key_store: KeyStore
    trust_store: TrustStore
    client_auth: str
    versions: tuple[str, ...]
    """TLSv1.2, TLSv1.3 or both."""
    cipher_suites: tuple[str, ...]
    checks_host: bool
    mapping_rules: str
    allows_dn_changes: bool
    allows_san_changes: bool

    @property
    def files(self) -> tuple[str, ...]:
        """What is looked at for changes."""
        return tuple(path for path in (self.key_store.location, self.trust_store.location) if path)


def tls_properties(value_of: ValueOf) -> TlsProperties:
    """Raises ConfigError."""
    keys = KeyStore(
        value_of(Declared.ssl_keystore_type),
        value_of(Declared.ssl_keystore_location) or None,
        value_of(Declared.ssl_keystore_password) or None,
        value_of(Declared.ssl_key_password) or None,
        value_of(Declared.ssl_keystore_key) or None,
        value_of(Declared.ssl_keystore_certificate_chain) or None,
    )
    trust = TrustStore(
        value_of(Declared.ssl_truststore_type),
        value_of(Declared.ssl_truststore_location) or None,
        value_of(Declared.ssl_truststore_password) or None,
        value_of(Declared.ssl_truststore_certificates) or None,
    )
    _check_stores(keys, trust)
    return TlsProperties(
        keys,
        trust,
        value_of(Declared.ssl_client_auth),
        _versions(value_of(Declared.ssl_enabled_protocols), value_of(Declared.ssl_protocol)),
        value_of(Declared.ssl_cipher_suites),
        bool(value_of(Declared.ssl_endpoint_identification_algorithm)),
        value_of(Declared.ssl_principal_mapping_rules),
        value_of(Declared.ssl_allow_dn_changes),
        value_of(Declared.ssl_allow_san_changes),
    )


_TWICE: Final = "is set beside {location}: use the file or the text, not both"


def _check_stores(keys: KeyStore, trust: TrustStore) -> None:
    if keys.location and (keys.key or keys.certificate_chain):
        raise ConfigError(
            "ssl.keystore.key or ssl.keystore.certificate.chain "
            + _TWICE.format(location="ssl.keystore.location")
        )
    if bool(keys.key) != bool(keys.certificate_chain):
        raise ConfigError(
            "ssl.keystore.key and ssl.keystore.certificate.chain belong together: set both, or"
            " ssl.keystore.location"
        )
    if trust.location and trust.certificates:
        raise ConfigError("ssl.truststore.certificates " + _TWICE.format(location="ssl.truststore.location"))


def _versions(enabled: tuple[str, ...], newest: str) -> tuple[str, ...]:
    versions = tuple(each for each in enabled if newest != "TLSv1.2" or each == "TLSv1.2")
    if not versions:
        raise ConfigError(
            f"ssl.enabled.protocols={','.join(enabled)} and ssl.protocol={newest} leave no version of TLS"
        )
    return versions
