"""Certificates for tests: an authority, a server at 127.0.0.1, and a client."""

from __future__ import annotations

import ssl
from functools import cache

import trustme

from headrace.network.tls import TlsSettings
from headrace.security.principal import ANONYMOUS


@cache
def authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


@cache
def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert("127.0.0.1", "localhost", key_type=trustme.KeyType.ECDSA).configure_cert(context)
    return context


@cache
def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority().configure_trust(context)
    return context


def settings() -> TlsSettings:
    return TlsSettings(server_context(), lambda _: ANONYMOUS)
