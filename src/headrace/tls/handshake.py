"""A handshake of a server's context with itself, in memory: a certificate that does not work is noticed
before any client meets it."""

from __future__ import annotations

import ssl
from dataclasses import replace

from headrace.config.tls_properties import TlsProperties
from headrace.core.errors import ConfigError
from headrace.tls import pem
from headrace.tls.contexts import load_trusted, server_context
from headrace.tls.stores import Identity

_MOST_STEPS = 10


def prove(properties: TlsProperties, identity: Identity) -> None:
    """Raises ConfigError. Clients' certificates are no part of it: ours need not be one that we accept."""
    server = server_context(replace(properties, client_auth="none"), identity, None)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    load_trusted(client, pem.certificates(identity.chain)[0])
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(down, up), server.wrap_bio(up, down, server_side=True)]
    for _ in range(_MOST_STEPS):
        for side in list(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                raise ConfigError(f"the certificate does not work: {error.verify_message}") from None
            except ssl.SSLError as error:
                raise ConfigError(f"the certificate does not work: {error.reason or error}") from None
            sides.remove(side)
        if not sides:
            return
    raise ConfigError("the certificate does not work: a handshake with it does not come to an end")
