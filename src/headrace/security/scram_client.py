"""SCRAM on the client, for our own tools and for brokers that speak to brokers."""

from __future__ import annotations

import hmac

from headrace.security.mechanism import AuthenticationFailed
from headrace.security.scram_credential import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
    client_key,
    salted_password,
    server_key,
)
from headrace.security.scram_messages import (
    TOKEN_EXTENSION,
    ServerFirst,
    encoded,
    escaped,
    parse_server_final,
)


class ScramClient:
    """`first`, then `final`, then `verify`, each once. Authenticated is only whoever's `verify` returned: a
    server that does not know the password cannot sign.
    """

    __slots__ = ("_first_bare", "_mechanism", "_nonce", "_password", "_signature", "_user")

    _GS2_HEADER = "n,,"

    def __init__(
        self, mechanism: ScramMechanism, user: str, password: str, nonce: str, *, is_token: bool = False
    ) -> None:
        self._mechanism = mechanism
        self._user = user
        self._password = password
        self._nonce = nonce
        extension = f",{TOKEN_EXTENSION}=true" if is_token else ""
        self._first_bare = f"n={escaped(user)},r={nonce}{extension}"
        self._signature: bytes | None = None

    def __repr__(self) -> str:
        return f"ScramClient({self._mechanism.value}, {self._user!r}, redacted)"

    def first(self) -> bytes:
        return f"{self._GS2_HEADER}{self._first_bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Takes milliseconds: not for an event loop. Raises AuthenticationFailed."""
        asked = ServerFirst.parse(server_first)
        if not asked.nonce.startswith(self._nonce) or len(asked.nonce) == len(self._nonce):
            raise AuthenticationFailed("Authentication failed: the server's nonce does not follow ours")
        # Few iterations would make the proof a gift to whoever plays the server; many would freeze us.
        if not MIN_ITERATIONS <= asked.iterations <= MAX_ITERATIONS:
            raise AuthenticationFailed(
                f"Authentication failed: the server asks for {asked.iterations} iterations, "
                f"and {MIN_ITERATIONS} to {MAX_ITERATIONS} are accepted"
            )
        salted = salted_password(self._mechanism, self._password, asked.salt, asked.iterations)
        without_proof = f"c={encoded(self._GS2_HEADER.encode())},r={asked.nonce}"
        signed = b",".join((self._first_bare.encode(), bytes(server_first), without_proof.encode()))
        key = client_key(self._mechanism, salted)
        signature = self._mechanism.hmac(self._mechanism.digest(key), signed)
        self._signature = self._mechanism.hmac(server_key(self._mechanism, salted), signed)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without_proof},p={encoded(proof)}".encode()

    def verify(self, server_final: bytes) -> None:
        """Raises AuthenticationFailed."""
        expected, self._signature = self._signature, None
        if expected is None or not hmac.compare_digest(parse_server_final(server_final), expected):
            raise AuthenticationFailed("Authentication failed: the server does not know the password")
