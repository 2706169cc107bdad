"""Where an issuer's keys come from: an https server or a file. Blocking: threads call this."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from headrace.config.bearer_properties import BearerProperties
from headrace.config.secret import Secret
from headrace.config.tls_properties import TrustStore
from headrace.core.errors import ConfigError, HeadraceError
from headrace.security.jaas import parse_login_module
from headrace.tls.contexts import load_trusted
from headrace.tls.stores import read_trusted

MAX_BYTES: Final = 1024 * 1024
TIMEOUT_SECONDS: Final = 5.0
_OPTIONS: Final = ("ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password")

Source = Callable[[], bytes]
"""Raises KeysUnavailable."""


class KeysUnavailable(HeadraceError):
    """The text says why, without anything that was received."""


def source_of(properties: BearerProperties, jaas: Secret | None) -> Source:
    """`jaas` may name a trust store for the https server, as in Kafka. Raises ConfigError."""
    if properties.file is not None:
        assert properties.directory is not None
        return partial(read_file, properties.file, properties.directory)
    return partial(fetch, properties.url, _context(jaas))


def read_file(path: str, directory: str) -> bytes:
    """Below `directory` also where links lead elsewhere."""
    real, allowed = os.path.realpath(path), os.path.realpath(directory)
    if not real.startswith(allowed.rstrip(os.sep) + os.sep):
        raise KeysUnavailable(f"{path} is not below headrace.oauthbearer.allowed.directory")
    try:
        with open(real, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise KeysUnavailable(f"cannot read {path}: {error.strerror}") from None
    return _checked(content)


def fetch(url: str, context: ssl.SSLContext, timeout: float = TIMEOUT_SECONDS) -> bytes:
    """Follows no redirect, and uses no proxy of the environment: keys come from where the file says, or not
    at all.
    """
    parts = urlsplit(url)
    connection = HTTPSConnection(parts.hostname or "", parts.port, timeout=timeout, context=context)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # A limit for each read alone would let a server that sends byte by byte hold the thread for ever.
    is_late, held = threading.Event(), _Held()
    watchdog = threading.Timer(timeout, _hang_up, (held, is_late))
    watchdog.daemon = True
    watchdog.start()
    try:
        _connect(connection, held, context, timeout)
        connection.request("GET", target, headers={"Accept": "application/json", "User-Agent": "headrace"})
        answer = connection.getresponse()
        if answer.status != HTTPStatus.OK:
            raise KeysUnavailable(f"the server of the keys answers {answer.status}")
        content = answer.read(MAX_BYTES + 1)
        if is_late.is_set():
            raise TimeoutError
    except (OSError, HTTPException, ValueError) as error:
        if is_late.is_set() or isinstance(error, TimeoutError):
            raise KeysUnavailable(f"the server of the keys took more than {timeout:g} s") from None
        raise KeysUnavailable(f"the server of the keys cannot be reached: {_reason(error)}") from None
    finally:
        watchdog.cancel()
        connection.close()
    return _checked(content)


class _Held:
    """The socket. A connection forgets its own before the answer has been read."""

    sock: socket.socket | None = None


def _connect(connection: HTTPSConnection, held: _Held, context: ssl.SSLContext, timeout: float) -> None:
    """Here rather than by the library, so that the watchdog can end a handshake too."""
    raw = socket.create_connection((connection.host, connection.port), timeout)
    connection.sock = raw
    secured = context.wrap_socket(raw, server_hostname=connection.host, do_handshake_on_connect=False)
    connection.sock = held.sock = secured
    secured.do_handshake()


def _hang_up(held: _Held, is_late: threading.Event) -> None:
    is_late.set()
    if held.sock is not None:
        with suppress(OSError):
            # Not that of TLS, which would take the session away from under the thread that reads.
            socket.socket.shutdown(held.sock, socket.SHUT_RDWR)


def _reason(error: Exception) -> str:
    """Of a certificate, of the network; never what the server has sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


def _checked(content: bytes) -> bytes:
    if len(content) > MAX_BYTES:
        raise KeysUnavailable(f"the keys have more than {MAX_BYTES} bytes")
    return content


def _context(jaas: Secret | None) -> ssl.SSLContext:
    """Trusts the system's authorities, or those of `ssl.truststore.location` among the options of `jaas`."""
    options = {} if jaas is None else parse_login_module(jaas.reveal()).options
    unknown = [name for name in options if name.startswith("ssl.") and name not in _OPTIONS]
    if unknown:
        raise ConfigError(f"sasl.jaas.config of OAUTHBEARER: of TLS it takes {', '.join(_OPTIONS)} alone")
    location, kind, password = (options.get(name, "") for name in _OPTIONS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if location:
        store = TrustStore(kind or "PEM", location, Secret(password) if password else None, None)
        load_trusted(context, read_trusted(store))
    else:
        context.load_default_certs()
    return context
