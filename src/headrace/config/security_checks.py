"""Rules over several properties of protection, and what the operator is told of its absence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headrace.config.listener_security import ListenerSecurity
from headrace.core.errors import ConfigError

if TYPE_CHECKING:
    from headrace.config.broker import BrokerConfig

SHORT_KEY: Final = 16
"""Characters. Whoever has one token can try keys at home until one makes its secret."""


def check_protection(config: BrokerConfig) -> None:
    """Raises ConfigError."""
    if config.super_users and not config.authorizer_class_name:
        raise ConfigError(
            "super.users is set and authorizer.class.name is not, so that everybody may do everything; set"
            " the second, or remove the first"
        )
    _check_accepted(config)
    security = config.security_of(config.inter_broker_listener.name)
    if security.has_sasl and config.zookeeper is not None:
        _check_between_brokers(security, config.sasl_mechanism_inter_broker_protocol)


def _check_between_brokers(security: ListenerSecurity, mechanism: str | None) -> None:
    if mechanism is None:
        raise ConfigError(
            f"brokers use the listener {security.listener} among themselves, which speaks"
            f" {security.protocol}: set sasl.mechanism.inter.broker.protocol, or give them an SSL listener of"
            " their own"
        )
    if mechanism not in security.jaas:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol={mechanism}: the listener {security.listener} does not"
            f" have it, or brokers have no user there; set listener.name.{security.listener.lower()}."
            f"{mechanism.lower()}.sasl.jaas.config with username and password"
        )


def _check_accepted(config: BrokerConfig) -> None:
    known = [listener.name for listener in config.bound_listeners]
    for name in config.headrace_inter_broker_accepted_listeners:
        if name.upper() not in known:
            raise ConfigError(
                f"headrace.inter.broker.accepted.listeners: there is no listener {name}; listeners has"
                f" {', '.join(known)}"
            )


def broker_listeners(config: BrokerConfig) -> frozenset[str]:
    """Where other brokers are served as brokers."""
    accepted = (name.upper() for name in config.headrace_inter_broker_accepted_listeners)
    return frozenset((config.inter_broker_listener.name, *accepted))


def exposure(config: BrokerConfig) -> list[str]:
    """What is reachable from outside and lacks a part of the protection, and what protects nothing."""
    warnings = [
        f"{listener} is reachable from outside, without {lacking}"
        for listener in config.bound_listeners
        if not listener.is_loopback and (lacking := _lacking(config.security_of(listener.name)))
    ]
    if (
        config.authorizer_class_name
        and config.zookeeper is not None
        and not config.zookeeper_security.sets_acl
    ):
        warnings.append(
            "authorizer.class.name is set, and whoever reaches ZooKeeper can change the cluster and its"
            " rules: set zookeeper.ssl.client.enable and zookeeper.set.acl"
        )
    if config.metrics is not None and config.metrics.is_open:
        warnings.append(f"metrics at {config.metrics.address} are served to everybody")
    all_security = config.listener_security.values()
    if "ssl.keystore.location" in config.given and all(each.tls is None for each in all_security):
        warnings.append("ssl.keystore.location is set, and no listener speaks TLS: see listeners")
    if config.sasl_enabled_mechanisms and not any(each.has_sasl for each in all_security):
        warnings.append("sasl.enabled.mechanisms is set, and no listener speaks SASL: see listeners")
    if config.delegation_token_secret_key:
        warnings.extend(_token_warnings(config))
    further = sorted(broker_listeners(config) - {config.inter_broker_listener.name})
    if further:
        warnings.append(
            f"brokers are accepted on {', '.join(further)} too: when every broker uses the new listener,"
            " remove headrace.inter.broker.accepted.listeners"
        )
    return warnings


def _token_warnings(config: BrokerConfig) -> list[str]:
    name, warnings = "delegation.token.secret.key", []
    key = config.delegation_token_secret_key
    if key and len(key.reveal()) < SHORT_KEY:
        warnings.append(f"{name} has fewer than {SHORT_KEY} characters and can be guessed: take a random one")
    mechanisms = {each for security in config.listener_security.values() for each in security.mechanisms}
    if not any(each.startswith("SCRAM-") for each in mechanisms):
        warnings.append(f"{name} is set, and no listener has SCRAM, by which tokens log in")
    return warnings


def _lacking(security: ListenerSecurity) -> str:
    lacking = [] if security.tls is not None else ["encryption"]
    return " or ".join(lacking if security.is_authenticated else [*lacking, "authentication"])
