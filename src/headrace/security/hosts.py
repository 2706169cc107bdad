"""The address of a peer as Java writes it: the `host` of an ACL is compared with this text."""

from __future__ import annotations

import ipaddress


def java_host(address: str) -> str:
    """Eight groups without `::` and without leading zeros; an IPv4-mapped IPv6 address is its IPv4 form.

    A scope (`fe80::1%eth0`) stays. Raises ValueError where `address` is not an address.
    """
    parsed = _unmapped(ipaddress.ip_address(address))
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    groups = (format(int.from_bytes(parsed.packed[at : at + 2], "big"), "x") for at in range(0, 16, 2))
    scope = f"%{parsed.scope_id}" if parsed.scope_id else ""
    return ":".join(groups) + scope


def encode_host(address: str) -> bytes:
    """Envelope's `client_host_address`: 4 or 16 raw bytes. The scope is of this machine alone, and is left
    out."""
    return _unmapped(ipaddress.ip_address(address)).packed


def decode_host(raw: bytes) -> str:
    """As `java_host` writes it. Raises ValueError unless there are 4 or 16 bytes."""
    if len(raw) not in (4, 16):
        raise ValueError(f"an address has 4 or 16 bytes, not {len(raw)}")
    return java_host(str(ipaddress.ip_address(bytes(raw))))


def _unmapped(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
