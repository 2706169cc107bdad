"""Dials other brokers: TCP, then TLS and SASL where the inter-broker listener has them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Final

from headrace.client.link import LinkSecurity, SocketDialer
from headrace.client.tls_failures import tls_failure
from headrace.core.ports_network import PeerSilent, PeerUntrusted
from headrace.network.direct_link import DirectLink
from headrace.network.tls import TlsSocket
from headrace.network.tls_link import TlsLink

CHUNK_BYTES: Final = 16 * 1024
MAX_HANDSHAKE_BYTES: Final = 256 * 1024
"""A server's part of a handshake: its certificates, and the names of those whom it trusts."""


class DirectDialer(SocketDialer):
    async def dial(self, host: str, port: int, *, timeout: float) -> DirectLink:
        security = self.security
        sock = await self.connect(host, port, timeout=timeout)
        if security is None:
            return DirectLink(asyncio.get_running_loop(), sock, f"{host}:{port}")
        link: DirectLink | None = None
        try:
            async with asyncio.timeout(timeout):
                link = await _secured(sock, security, host, f"{host}:{port}")
                await security.authenticate(link, link.peer, timeout)
        except BaseException as error:
            if link is not None:
                link.close()
            sock.close()
            if isinstance(error, TimeoutError):
                raise PeerSilent(f"TLS and SASL were not done after {timeout:g} s") from None
            if isinstance(error, OSError):
                raise PeerUntrusted(tls_failure(error)) from None
            raise
        return link


async def _secured(sock: socket.socket, security: LinkSecurity, host: str, peer: str) -> DirectLink:
    loop = asyncio.get_running_loop()
    if security.context is None:
        return DirectLink(loop, sock, peer)
    return TlsLink(loop, await shake_hands(loop, sock, security.context, host), peer)


async def shake_hands(
    loop: asyncio.AbstractEventLoop, sock: socket.socket, context: ssl.SSLContext, host: str
) -> TlsSocket:
    """As the client. Raises OSError, of which ssl.SSLError is one."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
    received = 0
    while True:
        try:
            tls.do_handshake()
            return TlsSocket(sock, tls, incoming, outgoing)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            await loop.sock_sendall(sock, outgoing.read())  # the alert, which tells the peer why
            raise
        await loop.sock_sendall(sock, outgoing.read())
        data = await loop.sock_recv(sock, CHUNK_BYTES)
        received += len(data)
        if not data or received > MAX_HANDSHAKE_BYTES:
            raise ConnectionResetError("no end of the handshake")
        incoming.write(data)
