"""Addresses: what the broker binds, and what it tells clients.

Stricter than Kafka on purpose: an empty host means the loopback address. A broker is reachable from outside
only where somebody wrote the address down.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import NamedTuple

from headrace.core.errors import ConfigError

LOOPBACK = "127.0.0.1"
ANY_ADDRESS = ("0.0.0.0", "::")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""In the order of Kafka's numbers."""

_ADDRESS = re.compile(r"([A-Za-z0-9_.-]+)://(\[[^\]]*\]|[^:/\[\]]*):(-?[0-9]{1,5})")
_HOST_PORT = re.compile(r"(\[[^\]]*\]|[^:/\[\]]*):([0-9]{1,5})")


class Listener(NamedTuple):
    name: str
    protocol: str
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """A name that begins like the address is none: it may resolve to any other."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def protocol_id(self) -> int:
        return PROTOCOLS.index(self.protocol)

    @property
    def is_any_address(self) -> bool:
        return self.host in ANY_ADDRESS

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = item.partition(":")
        if not colon or protocol not in PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: {item!r} is not NAME:PROTOCOL with a protocol of "
                f"{', '.join(PROTOCOLS)}"
            )
        protocols[name.upper()] = protocol
    return protocols


def parse_listeners(
    property_name: str, items: tuple[str, ...], protocols: dict[str, str]
) -> tuple[Listener, ...]:
    listeners = tuple(_parse_listener(property_name, item, protocols) for item in items)
    if not listeners:
        raise ConfigError(f"{property_name}: at least one address is needed, such as PLAINTEXT://:9092")
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise ConfigError(f"{property_name}: each address needs a listener name of its own")
    return listeners


def _parse_listener(property_name: str, item: str, protocols: dict[str, str]) -> Listener:
    match = _ADDRESS.fullmatch(item)
    if match is None:
        raise ConfigError(
            f"{property_name}: {item!r} is not NAME://host:port; write for instance PLAINTEXT://127.0.0.1:9092"
        )
    name = match[1].upper()
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"{property_name}: the listener {name} has no protocol; add {name}:SSL, or another, to "
            "listener.security.protocol.map"
        )
    return Listener(name, protocol, _host(match[2]), _port(property_name, match[3]))


def check_distinct_ports(listeners: tuple[Listener, ...]) -> None:
    taken: dict[int, str] = {}
    for listener in listeners:
        # Port 0 asks the system for a free one, so it never collides.
        if listener.port and listener.port in taken:
            raise ConfigError(
                f"listeners: {taken[listener.port]} and {listener.name} have the same port {listener.port}"
            )
        taken[listener.port] = listener.name


def advertised_of(listeners: tuple[Listener, ...]) -> tuple[Listener, ...]:
    for listener in listeners:
        if listener.is_any_address:
            raise ConfigError(
                f"listeners: {listener} is bound to every address, which no client can dial; say in "
                f"advertised.listeners what they should use, such as {listener.name}://broker1.example:"
                f"{listener.port}"
            )
    return listeners


def parse_host_port(property_name: str, text: str) -> tuple[str, int] | None:
    """`host:port`, or None for an empty text. An empty host is the loopback address."""
    if not text:
        return None
    match = _HOST_PORT.fullmatch(text)
    if match is None:
        raise ConfigError(f"{property_name}: {text!r} is not host:port; write for instance 127.0.0.1:9404")
    return _host(match[1]), _port(property_name, match[2])


def _host(text: str) -> str:
    return text.strip("[]") or LOOPBACK


def _port(property_name: str, text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ConfigError(f"{property_name}: {port} is not a port; use 0 to 65535")
    return port
