"""OpenSSL's contexts of servers and of clients. Blocking: not for an event loop."""

from __future__ import annotations

import os
import ssl
from typing import Final

from headrace.config.tls_properties import TlsProperties
from headrace.core.errors import ConfigError
from headrace.tls.stores import Identity, read_identity, read_trusted
from headrace.tls.suites import suites

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(properties: TlsProperties, identity: Identity, trusted: bytes | None) -> ssl.SSLContext:
    """Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _prepare(context, properties)
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 1  # enough to come back once, and each costs an encryption
    load_identity(context, identity)
    if trusted is not None:
        load_trusted(context, trusted)
    context.verify_mode = _CLIENT_AUTH[properties.client_auth]
    return context


def client_context(properties: TlsProperties) -> ssl.SSLContext:
    """Reads the stores. Without a trust store the system's authorities are trusted, as Java trusts its own.
    Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _prepare(context, properties)
    context.check_hostname = properties.checks_host
    if properties.key_store.is_there:
        load_identity(context, read_identity(properties.key_store))
    if properties.trust_store.is_there:
        load_trusted(context, read_trusted(properties.trust_store))
    else:
        context.load_default_certs()
    return context


def _prepare(context: ssl.SSLContext, properties: TlsProperties) -> None:
    chosen = suites(properties.cipher_suites, properties.versions)
    context.minimum_version = min(_VERSIONS[each] for each in chosen.versions)
    context.maximum_version = max(_VERSIONS[each] for each in chosen.versions)
    context.options |= ssl.OP_NO_RENEGOTIATION
    # As in Java, a certificate in the trust store is trusted as it is, whoever signed it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if chosen.openssl:
        context.set_ciphers(chosen.openssl)


def load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    """Through a file that exists in memory alone: no key touches a disk. Raises ConfigError."""
    asked = False

    def password() -> str:
        nonlocal asked
        asked = True
        return "" if identity.password is None else identity.password.reveal()

    descriptor = os.memfd_create("identity", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(identity.key + identity.chain)
        # Without a function OpenSSL would ask at the terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=password)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(_complaint(error, asked, identity.password is not None)) from None
    finally:
        os.close(descriptor)


def _complaint(error: Exception, was_asked: bool, has_password: bool) -> str:
    if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
        return "the private key is not that of the first certificate: put the broker's own certificate first"
    if was_asked:
        problem = "wrong" if has_password else "not set"
        return f"the private key cannot be decrypted: ssl.key.password is {problem}"
    return f"the key and its certificates cannot be used: {getattr(error, 'reason', None) or 'not readable'}"


def load_trusted(context: ssl.SSLContext, trusted: bytes) -> None:
    try:
        context.load_verify_locations(cadata=trusted.decode())
    except (ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", None) or "not readable"
        raise ConfigError(f"the trusted certificates cannot be used: {reason}") from None
