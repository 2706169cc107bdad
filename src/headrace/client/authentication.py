"""A client proves who it is, before its first request: PLAIN and SCRAM over a link."""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from headrace.client.connection import Connection
from headrace.client.credentials import Credentials
from headrace.client.errors import ClientFailure
from headrace.core.errors import HeadraceError
from headrace.core.ports_network import Link, PeerUntrusted
from headrace.protocol.error_codes import ErrorCode
from headrace.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from headrace.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from headrace.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from headrace.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from headrace.security.scram_client import ScramClient
from headrace.security.scram_credential import ScramMechanism

_HANDSHAKE_VERSION: Final = 1
_AUTHENTICATE_VERSION: Final = 1
_NONCE_BYTES: Final = 24


async def authenticate(link: Link, peer: str, credentials: Credentials, timeout: float) -> None:
    """Raises PeerUntrusted; the link is of no use then."""
    connection = Connection.over(link, peer)
    try:
        async with asyncio.timeout(timeout):
            await _handshake(connection, credentials.mechanism, timeout)
            if credentials.mechanism == "PLAIN":
                await _plain(connection, credentials, timeout)
            else:
                await _scram(connection, credentials, timeout)
    except TimeoutError:
        raise PeerUntrusted(f"SASL was not done after {timeout:g} s") from None
    except HeadraceError as error:
        raise PeerUntrusted(_sentence(error)) from None


def _sentence(error: HeadraceError) -> str:
    if isinstance(error, ClientFailure):
        return f"it hung up before SASL was done: {error}; does this listener have SASL?"
    return str(error)


async def _handshake(connection: Connection, mechanism: str, timeout: float) -> None:
    reply = await connection.request(
        SaslHandshakeRequest(mechanism=mechanism),
        SaslHandshakeResponse,
        version=_HANDSHAKE_VERSION,
        timeout=timeout,
    )
    if reply.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        there = ", ".join(reply.mechanisms) or "none"
        raise PeerUntrusted(f"it does not have sasl.mechanism={mechanism}; it has {there}")
    if reply.error_code:
        raise PeerUntrusted(
            f"it does not authenticate by SASL here (error {reply.error_code}): see security.protocol"
        )


async def _plain(connection: Connection, credentials: Credentials, timeout: float) -> None:
    token = f"\0{credentials.username}\0{credentials.password.reveal()}"
    await _send(connection, token.encode(), timeout)


async def _scram(connection: Connection, credentials: Credentials, timeout: float) -> None:
    client = ScramClient(
        ScramMechanism(credentials.mechanism),
        credentials.username,
        credentials.password.reveal(),
        secrets.token_urlsafe(_NONCE_BYTES),
        is_token=credentials.is_token,
    )
    first = await _send(connection, client.first(), timeout)
    # Thousands of hashes: the loop goes on meanwhile.
    final = await asyncio.get_running_loop().run_in_executor(None, client.final, first)
    client.verify(await _send(connection, final, timeout))


async def _send(connection: Connection, token: bytes, timeout: float) -> bytes:
    reply = await connection.request(
        SaslAuthenticateRequest(auth_bytes=token),
        SaslAuthenticateResponse,
        version=_AUTHENTICATE_VERSION,
        timeout=timeout,
    )
    if reply.error_code:
        raise PeerUntrusted(reply.error_message or f"authentication failed (error {reply.error_code})")
    return bytes(reply.auth_bytes)
