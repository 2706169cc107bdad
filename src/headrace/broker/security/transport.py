"""What protects the listeners, put in place before their ports are bound."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from headrace.broker.runtime.runtime import Runtime
from headrace.broker.security.not_served import require_served


def protect(
    runtime: Runtime,
    network: Any,
    stops: AsyncExitStack,
    *,
    has_authentication: bool = False,
    has_authorization: bool = False,
) -> None:
    """Raises ConfigError. The flags say which parts this broker has beside TLS."""
    config = runtime.static_config
    require_served(config, has_authentication=has_authentication, has_authorization=has_authorization)
    if all(security.tls is None for security in config.listener_security.values()):
        return
    # Only here: a broker without TLS needs no library for certificates, and does not load it.
    from headrace.broker.security.certificates import Certificates

    network.handshakes.max_seconds = config.headrace_authentication_timeout_ms / 1000
    certificates = Certificates(runtime, network, lambda _listener, _loaded: None)
    certificates.open()
    certificates.start()
    stops.callback(certificates.stop)
    runtime.reload_files = certificates.reload
