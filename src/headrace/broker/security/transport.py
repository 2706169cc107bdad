"""What protects the listeners, put in place before their ports are bound."""

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack
from typing import Any

from headrace.broker.runtime.runtime import Runtime
from headrace.client.credentials import credentials_of
from headrace.client.link_security import SecureLinks


def protect(runtime: Runtime, network: Any, stops: AsyncExitStack) -> None:
    """Raises ConfigError."""
    config = runtime.static_config
    between_brokers = config.security_of(config.inter_broker_listener.name)
    if between_brokers.tls is None and between_brokers.has_sasl:
        _secure_dialer(runtime, None)
    to_zookeeper = config.zookeeper is not None and config.zookeeper_security.tls is not None
    if not to_zookeeper and all(security.tls is None for security in config.listener_security.values()):
        return
    # Only here: a broker without TLS needs no library for certificates, and does not load it.
    from headrace.broker.security.certificates import Certificates
    from headrace.broker.security.listener_tls import ListenerTls

    def on_loaded(listener: str, loaded: ListenerTls) -> None:
        if listener == between_brokers.listener:
            _secure_dialer(runtime, loaded.client)

    network.handshakes.max_seconds = config.headrace_authentication_timeout_ms / 1000
    certificates = Certificates(runtime, network, on_loaded)
    certificates.open()
    certificates.start()
    stops.callback(certificates.stop)
    runtime.reload_files = certificates.reload


def _secure_dialer(runtime: Runtime, context: ssl.SSLContext | None) -> None:
    """This broker dials others as their inter-broker listener wants it, with its own certificate."""
    config = runtime.static_config
    security = config.security_of(config.inter_broker_listener.name)
    mechanism = config.sasl_mechanism_inter_broker_protocol
    credentials = None
    if security.has_sasl and mechanism is not None:
        credentials = credentials_of(mechanism, security.jaas[mechanism])
    dialer: Any = runtime.environment.dialer
    dialer.security = SecureLinks(context, credentials)
