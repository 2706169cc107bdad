"""TLS to ZooKeeper: sockets for kazoo's thread, and in words what went wrong with them.

kazoo's own TLS trusts the system's authorities beside ours and compares no host names, so it is not used. The
stores are read again for each connection: a certificate that was renewed counts from the next one on.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

from headrace.config.tls_properties import TlsProperties
from headrace.core.errors import ConfigError
from headrace.tls.contexts import client_context

_LOG: Final = logging.getLogger("headrace.zookeeper")

_REFUSED: Final = (
    "it does not accept our certificate, or wants one where there is none: zookeeper.ssl.keystore.location"
    " needs one that its ssl.trustStore.location trusts"
)
_SENTENCES: Final = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS there: zookeeper.connect must name its secureClientPort",
    "UNEXPECTED_EOF_WHILE_READING": "it hung up during the TLS handshake: does zookeeper.connect name its"
    " secureClientPort?",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it wants a certificate: set zookeeper.ssl.keystore.location",
    "SSLV3_ALERT_BAD_CERTIFICATE": _REFUSED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _REFUSED,
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust our certificate: zookeeper.ssl.keystore.location needs one"
    " that its ssl.trustStore.location trusts",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our certificate has expired: renew zookeeper.ssl.keystore.location",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it refuses the handshake: is zookeeper.ssl.keystore.location missing?",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no TLS that is safe: set ssl.enabledProtocols there",
    "UNSUPPORTED_PROTOCOL": "it speaks no TLS that is safe: set ssl.enabledProtocols there",
}
_UNKNOWN_ISSUERS: Final = frozenset((2, 18, 19, 20, 21))
"""OpenSSL's numbers for a chain that ends at nobody whom we trust."""
_EXPIRED: Final = 10
_OTHER_HOSTS: Final = frozenset((62, 64))
"""Of names and of addresses."""


def sentence(error: BaseException, host: str) -> str:
    """What the failure means to an operator, and what to set."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _OTHER_HOSTS:
            return (
                f"its certificate is not for {host}: name the host in zookeeper.connect as the certificate"
                f" does, or give ZooKeeper one for it (`headrace cert create zookeeper --host {host}`)"
            )
        if error.verify_code == _EXPIRED:
            return "its certificate has expired: renew it there"
        if error.verify_code in _UNKNOWN_ISSUERS:
            return (
                f"its certificate is not trusted ({error.verify_message}): zookeeper.ssl.truststore.location"
                " needs the authority that signed it"
            )
        return f"its certificate is not accepted: {error.verify_message}"
    reason = getattr(error, "reason", None)
    if isinstance(reason, str):
        return _SENTENCES.get(reason, f"TLS failed: {reason.lower().replace('_', ' ')}")
    # How an end in the handshake looks depends on how far it had come.
    if isinstance(error, ConnectionError | ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return _SENTENCES["UNEXPECTED_EOF_WHILE_READING"]
    return str(error) or type(error).__name__


class _Socket(ssl.SSLSocket):
    """In TLS 1.3 a server refuses a client's certificate after the handshake: the first read meets it, as an
    alert, or as the end where the alert was lost."""

    on_failure: Callable[[str], None] = staticmethod(lambda _: None)
    host = ""
    _is_heard = False

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        try:
            data = super().recv(buflen, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            self.on_failure(sentence(error, self.host))
            raise
        except ConnectionError:
            self._tell_of_end()
            raise
        if data:
            self._is_heard = True
        else:
            self._tell_of_end()
        return data

    def _tell_of_end(self) -> None:
        """Later on it is a server that stops, and nothing about TLS."""
        if not self._is_heard:
            self.on_failure(_REFUSED)


class SecureSockets:
    """Made on the event loop's side, used by kazoo's thread. Attributes are replaced, never changed."""

    def __init__(self, properties: TlsProperties) -> None:
        """Reads the stores: not for an event loop. Raises ConfigError."""
        self._properties = properties
        self._context = self._made()
        self.failure: str | None = None
        """Why the last attempt failed; None after one that succeeded."""

    def _made(self) -> ssl.SSLContext:
        try:
            context = client_context(self._properties)
        except ConfigError as error:
            raise ConfigError(f"zookeeper.ssl.*: {error}") from None
        context.sslsocket_class = _Socket
        return context

    def connect(self, address: tuple[str, int], host: str, timeout: float) -> ssl.SSLSocket:
        """`address` is where `host` was found. Raises OSError."""
        try:
            self._context = self._made()
        except ConfigError as error:  # half written, perhaps: what worked before may still do
            self._note(str(error))
        plain = socket.create_connection(address, timeout)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            secured = self._context.wrap_socket(plain, server_hostname=host)
        except (OSError, ValueError) as error:
            plain.close()
            if not isinstance(error, TimeoutError):
                self._note(f"{host}:{address[1]}: {sentence(error, host)}")
            raise
        assert isinstance(secured, _Socket)
        secured.host = host
        secured.on_failure = lambda why: self._note(f"{host}:{address[1]}: {why}")
        return secured

    def _note(self, failure: str) -> None:
        """It comes again with every attempt, and is told once."""
        if failure != self.failure:
            self.failure = failure
            _LOG.warning("no TLS connection to ZooKeeper: %s", failure)

    def succeeded(self) -> None:
        self.failure = None


def has_pending(connection: Any) -> bool:
    """Whether there are bytes that were decrypted and not read: no select tells of them."""
    return isinstance(connection, ssl.SSLSocket) and connection.pending() > 0
