"""Who a peer is by its certificate."""

from __future__ import annotations

from collections.abc import Callable

from headrace.network.tls import TlsSocket
from headrace.security.distinguished_name import rendered, subject_of
from headrace.security.mapping_rules import MappingRules
from headrace.security.principal import ANONYMOUS, Principal, user


def principal_by(rules: str) -> Callable[[TlsSocket], Principal]:
    """`rules` is `ssl.principal.mapping.rules`. Raises ConfigError.

    The function that it gives raises ClientError for a certificate that names nobody here.
    """
    mapping = MappingRules.parse(rules)

    def principal_of(sock: TlsSocket) -> Principal:
        certificate = sock.peer_certificate()
        if certificate is None:
            return ANONYMOUS
        return user(mapping.principal_name(rendered(subject_of(certificate))))

    return principal_of
