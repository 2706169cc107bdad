"""Where HTTP is served, and how it is protected: the broker's metrics, and the schema registry.

Only the loopback address can be served without protection. Elsewhere it takes TLS and a way for clients to
say who they are, or the word `none`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from headrace.config.listener_security import ListenerSecurity, listener_security
from headrace.config.listeners import Listener, parse_host_port
from headrace.core.errors import ConfigError

BASIC: Final = "basic"
BEARER: Final = "bearer"
MTLS: Final = "mtls"
NONE: Final = "none"
METHODS: Final = (BASIC, BEARER, MTLS, NONE)
_HTTPS: Final = "https://"
_HTTP: Final = "http://"


class Words(NamedTuple):
    """What the settings are called where they are made: in a broker's file, or as options of a command."""

    name: str
    """Of the listener, for the prefix of its `ssl.` properties."""
    address: str
    methods: str
    tokens: str


@dataclass(frozen=True, slots=True)
class HttpListener:
    name: str
    host: str
    port: int
    security: ListenerSecurity | None
    """None without TLS."""
    methods: tuple[str, ...]
    """How clients say who they are. Any one of them will do; nobody is asked where there is none."""
    token_file: str | None
    is_open: bool
    """Reachable from outside by everybody, because somebody asked for that by name."""

    @property
    def scheme(self) -> str:
        return "http" if self.security is None else "https"

    @property
    def address(self) -> str:
        """With the host in brackets where it is an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def http_listener(
    words: Words, text: str, methods: tuple[str, ...], token_file: str | None, mapping: Mapping[str, str]
) -> HttpListener | None:
    """`text` is [https://]host:port; None where it is empty. `mapping` has the `ssl.` properties.

    Raises ConfigError.
    """
    wants_tls = text.lower().startswith(_HTTPS)
    bare = text[len(_HTTPS) :] if wants_tls else text.removeprefix(_HTTP)
    address = parse_host_port(words.address, bare.removesuffix("/"))
    if address is None:
        return None
    _check_methods(words, methods, token_file)
    asked = tuple(each for each in methods if each != NONE)
    listener = Listener(words.name, "SSL" if wants_tls else "PLAINTEXT", *address)
    if not listener.is_loopback and NONE not in methods:
        _require_protection(words, text, asked, wants_tls)
    if MTLS in asked and not wants_tls:
        raise ConfigError(f"{words.methods}: mtls needs TLS; write {words.address}={_HTTPS}{bare}")
    security = _with_client_auth(listener_security(listener, mapping), asked) if wants_tls else None
    is_open = not listener.is_loopback and not asked
    return HttpListener(words.name, *address, security, asked, token_file, is_open)


def _check_methods(words: Words, methods: tuple[str, ...], token_file: str | None) -> None:
    for each in methods:
        if each not in METHODS:
            raise ConfigError(f"{words.methods}: {each!r} is not one of {', '.join(METHODS)}")
    if NONE in methods and len(methods) > 1:
        raise ConfigError(f"{words.methods}: none stands alone; remove it, or the others")
    if BEARER in methods and not token_file:
        raise ConfigError(f"{words.methods}: bearer needs {words.tokens}, a file with lines name=token")
    if token_file and BEARER not in methods:
        raise ConfigError(f"{words.tokens} is set, and {words.methods} does not name bearer")


def _require_protection(words: Words, text: str, asked: tuple[str, ...], has_tls: bool) -> None:
    if not asked:
        raise ConfigError(
            f"{words.address}={text} is reachable from outside, and nobody would be asked who they are: set "
            f"{words.methods} to basic, bearer or mtls, and write {_HTTPS} before the address; or listen on "
            f"127.0.0.1. {words.methods}=none serves everybody"
        )
    if not has_tls:
        raise ConfigError(
            f"{words.address}={text} is reachable from outside, and everybody on the way could read what is "
            f"sent: write {_HTTPS} before the address, or listen on 127.0.0.1"
        )


def _with_client_auth(security: ListenerSecurity, asked: tuple[str, ...]) -> ListenerSecurity:
    """Certificates of clients are asked for where they count, and only there."""
    assert security.tls is not None, "it was asked for"
    wanted = "none" if MTLS not in asked else "required" if len(asked) == 1 else "requested"
    if wanted != "none" and not security.tls.trust_store.is_there:
        raise ConfigError(
            f"the listener {security.listener} asks clients for certificates and does not know whom to trust:"
            " set ssl.truststore.location or ssl.truststore.certificates"
        )
    return replace(security, tls=replace(security.tls, client_auth=wanted))
