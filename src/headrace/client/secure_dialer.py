"""The dialer of a client that connects by TLS or SASL, or by neither."""

from __future__ import annotations

from headrace.client.link import TcpDialer
from headrace.client.security import ClientSecurity


def dialer_of(security: ClientSecurity) -> TcpDialer:
    """Reads the key store and the trust store. Raises ConfigError."""
    if security.tls is None and security.credentials is None:
        return TcpDialer()
    from headrace.client.link_security import SecureLinks

    context = None
    if security.tls is not None:
        # Only here: a client without TLS needs no library for certificates, and does not load it.
        from headrace.tls.contexts import client_context

        context = client_context(security.tls)
    return TcpDialer(security=SecureLinks(context, security.credentials))
