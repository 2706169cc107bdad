"""How one listener is protected, from the properties of the broker and those under the listener's prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from headrace.config.bearer_properties import BearerProperties, bearer_properties
from headrace.config.broker_properties.authentication import AuthenticationProperties
from headrace.config.broker_properties.kerberos import KerberosProperties
from headrace.config.broker_properties.tls import TlsListenerProperties
from headrace.config.listeners import Listener
from headrace.config.property import Property
from headrace.config.protection import JAAS, scope_of
from headrace.config.secret import Secret
from headrace.config.tls_properties import TlsProperties, tls_properties
from headrace.core.errors import ConfigError

_SASL: Final = AuthenticationProperties
_KERBEROS: Final = KerberosProperties
_READABLE: Final = {"PLAIN": "passwords", "OAUTHBEARER": "tokens"}
"""What these mechanisms send is all that somebody needs to log in."""


@dataclass(frozen=True, slots=True)
class KerberosSettings:
    """Beside the keytab and the broker's own principal, which are in the text of GSSAPI's login module."""

    service_name: str
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    listener: str
    protocol: str
    tls: TlsProperties | None
    """None for PLAINTEXT and SASL_PLAINTEXT."""
    mechanisms: tuple[str, ...]
    """Empty without SASL."""
    jaas: Mapping[str, Secret]
    """Texts by mechanism. They hold passwords, so nobody shows them."""
    reauth_ms: Mapping[str, int]
    """By mechanism; 0 asks for no authentication after the first."""
    max_receive_bytes: int
    """Of a request before authentication."""
    bearer: BearerProperties | None = None
    """Of OAUTHBEARER; None without it."""
    kerberos: KerberosSettings | None = None
    """Of GSSAPI; None without it."""

    @property
    def has_sasl(self) -> bool:
        return self.protocol.startswith("SASL_")

    @property
    def client_auth(self) -> str:
        return "none" if self.tls is None else self.tls.client_auth

    @property
    def is_authenticated(self) -> bool:
        """Whether everybody who connects proves who they are."""
        return self.has_sasl or self.client_auth == "required"


class _Scope:
    """The properties as one listener sees them."""

    def __init__(self, listener: Listener, mapping: Mapping[str, str]) -> None:
        self.name = listener.name
        self.prefix = f"listener.name.{listener.name.lower()}."
        self._mapping = mapping

    def is_own(self, declared: Property[Any]) -> bool:
        return self.prefix + declared.name in self._mapping

    def value_of(self, declared: Property[Any]) -> Any:
        return self._first(declared, self.prefix + declared.name, declared.name)

    def value_for(self, declared: Property[Any], mechanism: str) -> Any:
        infix = f"{mechanism.lower()}."
        return self._first(
            declared,
            f"{self.prefix}{infix}{declared.name}",
            self.prefix + declared.name,
            infix + declared.name,
            declared.name,
        )

    def _first(self, declared: Property[Any], *names: str) -> Any:
        for name in names:
            if name in self._mapping:
                try:
                    return declared.parse(self._mapping[name])
                except ValueError as error:
                    raise ConfigError(f"{name.removesuffix(declared.name)}{error}") from None
        return declared.default


def listener_security(listener: Listener, mapping: Mapping[str, str]) -> ListenerSecurity:
    """`mapping` is the whole file. Raises ConfigError."""
    scope = _Scope(listener, mapping)
    has_sasl = listener.protocol.startswith("SASL_")
    tls = _tls(scope, has_sasl) if listener.protocol.endswith("SSL") else None
    mechanisms = _mechanisms(scope, listener.protocol) if has_sasl else ()
    jaas = {each: scope.value_for(_SASL.sasl_jaas_config, each) for each in mechanisms}
    if "PLAIN" in jaas and not jaas["PLAIN"]:
        raise ConfigError(
            f"the listener {listener.name} has PLAIN and no users: set {scope.prefix}plain.{JAAS}"
        )
    if "GSSAPI" in jaas and not jaas["GSSAPI"]:
        raise ConfigError(
            f"the listener {listener.name} has GSSAPI and no keytab: set {scope.prefix}gssapi.{JAAS}"
        )
    return ListenerSecurity(
        listener.name,
        listener.protocol,
        tls,
        mechanisms,
        MappingProxyType({each: text for each, text in jaas.items() if text}),
        MappingProxyType(
            {each: scope.value_for(_SASL.connections_max_reauth_ms, each) for each in mechanisms}
        ),
        scope.value_of(_SASL.sasl_server_max_receive_size),
        _bearer(scope) if "OAUTHBEARER" in mechanisms else None,
        _kerberos(scope) if "GSSAPI" in mechanisms else None,
    )


def _bearer(scope: _Scope) -> BearerProperties:
    try:
        return bearer_properties(scope.value_of)
    except ConfigError as error:
        raise ConfigError(f"the listener {scope.name}: {error}") from None


def _kerberos(scope: _Scope) -> KerberosSettings:
    service_name = scope.value_of(_KERBEROS.sasl_kerberos_service_name)
    if not service_name:
        raise ConfigError(
            f"the listener {scope.name}: GSSAPI needs {_KERBEROS.sasl_kerberos_service_name.name}"
        )
    return KerberosSettings(service_name, scope.value_of(_KERBEROS.sasl_kerberos_principal_to_local_rules))


def _tls(scope: _Scope, has_sasl: bool) -> TlsProperties:
    try:
        tls = tls_properties(scope.value_of)
    except ConfigError as error:
        raise ConfigError(f"the listener {scope.name}: {error}") from None
    if has_sasl and not scope.is_own(TlsListenerProperties.ssl_client_auth):
        tls = replace(tls, client_auth="none")  # as in Kafka: there SASL says who it is
    if not tls.key_store.is_there:
        raise ConfigError(
            f"the listener {scope.name} speaks TLS and has no certificate: set ssl.keystore.location, or"
            " ssl.keystore.key and ssl.keystore.certificate.chain"
        )
    if tls.client_auth != "none" and not tls.trust_store.is_there:
        raise ConfigError(
            f"the listener {scope.name} asks clients for certificates (ssl.client.auth={tls.client_auth})"
            " and does not know whom to trust: set ssl.truststore.location or ssl.truststore.certificates"
        )
    return tls


def _mechanisms(scope: _Scope, protocol: str) -> tuple[str, ...]:
    declared = _SASL.sasl_enabled_mechanisms
    mechanisms: tuple[str, ...] = scope.value_of(declared)
    if not mechanisms:
        raise ConfigError(
            f"the listener {scope.name} speaks {protocol} and has no mechanism: set sasl.enabled.mechanisms"
        )
    readable = next((each for each in mechanisms if each in _READABLE), None)
    if protocol == "SASL_PLAINTEXT" and readable and not scope.is_own(declared):
        raise ConfigError(
            f"the listener {scope.name} would carry {_READABLE[readable]} that everybody on the way can read"
            f" ({readable} over SASL_PLAINTEXT): use SASL_SSL or SCRAM, or ask for it by"
            f" {scope.prefix}{declared.name}={readable}"
        )
    return mechanisms


def require_known_listeners(
    mapping: Mapping[str, str], listeners: tuple[Listener, ...], reserved: set[str]
) -> None:
    """A prefix that fits no listener protects nothing. Raises ConfigError."""
    names = {each.name.lower() for each in listeners} | {each.lower() for each in reserved}
    for full_name in sorted(mapping):
        scoped = scope_of(full_name)
        if scoped is not None and scoped.listener is not None and scoped.listener not in names:
            raise ConfigError(
                f"{full_name}: there is no listener {scoped.listener} (the prefix is in small letters);"
                f" listeners has {', '.join(sorted(names))}"
            )
