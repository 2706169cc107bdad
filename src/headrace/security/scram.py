"""SCRAM on the server (RFC 5802, RFC 7677). A login costs a few HMACs: the password is never here.

Whoever does not exist gets the same messages at the same cost as whoever does, and fails at the end.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final, NamedTuple

from headrace.core.completion import Completion
from headrace.security.mechanism import Authenticated, AuthenticationFailed, Step
from headrace.security.principal import Principal, user
from headrace.security.scram_credential import (
    DEFAULT_ITERATIONS,
    DEFAULT_SALT_BYTES,
    ScramCredential,
    ScramMechanism,
)
from headrace.security.scram_messages import TOKEN_EXTENSION, ClientFinal, ClientFirst, ServerFirst, encoded

_LONGEST_SERVER_NONCE: Final = 256
_TOKEN_EXTENSION: Final = TOKEN_EXTENSION.encode()


class TokenCredential(NamedTuple):
    """Of a delegation token: its id is the name, its base64 HMAC the password."""

    credential: ScramCredential
    owner: Principal
    lifetime_ms: int | None = None


class _Due(NamedTuple):
    """What the client's final message is checked against."""

    first: ClientFirst
    reply: ServerFirst
    credential: ScramCredential
    outcome: Authenticated | None
    """None for whoever does not exist."""


class ScramExchange:
    """`server_nonce` is new for every exchange; `secret` is the same for as long as the cluster lives, and on
    every broker of it, so that an unknown user keeps its salt. `derive_token` makes the credential that
    `find_token` finds, if that is not there yet.
    """

    __slots__ = (
        "_derive_token",
        "_due",
        "_find",
        "_find_token",
        "_is_over",
        "_mechanism",
        "_nonce",
        "_secret",
    )

    def __init__(
        self,
        mechanism: ScramMechanism,
        find: Callable[[str], ScramCredential | None],
        server_nonce: str,
        secret: bytes,
        find_token: Callable[[str], TokenCredential | None] | None = None,
        derive_token: Callable[[str], Completion[None] | None] | None = None,
    ) -> None:
        if not 0 < len(server_nonce) <= _LONGEST_SERVER_NONCE:
            raise ValueError("a server's nonce has 1 to 256 characters")
        self._mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._derive_token = derive_token
        self._nonce = server_nonce
        self._secret = secret
        self._due: _Due | None = None
        self._is_over = False

    def prepare(self, token: bytes) -> Completion[None] | None:
        if self._derive_token is None or self._due is not None or _TOKEN_EXTENSION not in token:
            return None
        try:
            first = ClientFirst.parse(token)
        except AuthenticationFailed:
            return None
        return self._derive_token(first.name) if first.wants_token else None

    def step(self, token: bytes) -> Step:
        if self._is_over:
            raise AuthenticationFailed
        # Over until the step has gone well: no error leaves an exchange that goes on.
        self._is_over = True
        if self._due is None:
            self._due = self._on_first(ClientFirst.parse(token))
            self._is_over = False
            return Step(str(self._due.reply).encode())
        due, self._due = self._due, None
        return self._on_final(due, ClientFinal.parse(token))

    def _on_first(self, first: ClientFirst) -> _Due:
        # Before anything is looked up: the answer tells nothing about who exists.
        if first.authorization_id not in ("", first.name):
            raise AuthenticationFailed("Authentication failed: the authorization id is not the user")
        credential, outcome = self._token(first.name) if first.wants_token else self._user(first.name)
        # Made in any case, so that the time does not tell whether it is used.
        invented = self._invented(first)
        if credential is None or not credential.fits(self._mechanism):
            credential, outcome = invented, None
        reply = ServerFirst(first.nonce + self._nonce, credential.salt, credential.iterations)
        return _Due(first, reply, credential, outcome)

    def _user(self, name: str) -> tuple[ScramCredential | None, Authenticated | None]:
        return self._find(name), Authenticated(user(name))

    def _token(self, token_id: str) -> tuple[ScramCredential | None, Authenticated | None]:
        found = self._find_token(token_id) if self._find_token is not None else None
        if found is None:
            return None, None
        return found.credential, Authenticated(found.owner, found.lifetime_ms, token_id)

    def _invented(self, first: ClientFirst) -> ScramCredential:
        """The same for the same name at any time, as a stored one is."""
        kind = "token" if first.wants_token else "user"
        seed = f"{self._mechanism.value}\0{kind}\0{first.name}".encode()
        salt, key = (self._mechanism.hmac(self._secret, part + seed) for part in (b"salt\0", b"key\0"))
        return ScramCredential(salt[:DEFAULT_SALT_BYTES], DEFAULT_ITERATIONS, key, key)

    def _on_final(self, due: _Due, final: ClientFinal) -> Step:
        # A final message of another exchange must not count here. librdkafka before 2.6.1 puts its own nonce
        # before the whole of it once more, so it only has to end so: the signature covers what was sent.
        if not final.nonce.endswith(due.reply.nonce):
            raise AuthenticationFailed
        if final.channel_binding != due.first.gs2_header.encode():
            raise AuthenticationFailed
        signed = f"{due.first.bare},{due.reply},{final.without_proof}".encode()
        is_right = self._proves(due.credential, signed, final.proof)
        signature = self._mechanism.hmac(due.credential.server_key, signed)
        if not is_right or due.outcome is None:
            raise AuthenticationFailed
        return Step(f"v={encoded(signature)}".encode(), due.outcome)

    def _proves(self, credential: ScramCredential, signed: bytes, proof: bytes) -> bool:
        if len(proof) != self._mechanism.key_bytes:
            return False
        signature = self._mechanism.hmac(credential.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        return hmac.compare_digest(self._mechanism.digest(client_key), credential.stored_key)
