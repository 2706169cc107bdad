"""The secret of a delegation token (KIP-48): the HMAC of its id, under a key that all brokers share.

A client logs in with the HMAC as its password, and names a token by it when it renews or expires one.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Final

from headrace.security.scram_credential import DEFAULT_SALT_BYTES

HMAC_BYTES: Final = 64
_SALT: Final = "salt"
"""No token id has a zero byte, so no salt is a part of a token's HMAC."""


class TokenSecret:
    """Invariant: `_hmacs` and `_ids` say the same of the same tokens."""

    __slots__ = ("_epoch", "_hmacs", "_ids", "_key")

    def __init__(self, key: bytes) -> None:
        if not key:
            raise ValueError("the key of delegation tokens is empty")
        self._key = key
        self._epoch = -1
        self._hmacs: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}

    def __repr__(self) -> str:
        return "TokenSecret(redacted)"

    def hmac_of(self, token_id: str) -> bytes:
        return hmac.digest(self._key, token_id.encode(), "sha512")

    def salt_of(self, token_id: str, mechanism: str) -> bytes:
        """Of the token's SCRAM credential: the same at every broker, and told to whoever asks for it."""
        seed = f"{_SALT}\0{mechanism}\0{token_id}".encode()
        return hmac.digest(self._key, seed, "sha512")[:DEFAULT_SALT_BYTES]

    def find(self, given: bytes, token_ids: Iterable[str], epoch: int) -> str | None:
        """The id of the token whose HMAC was given. `token_ids` are looked at only where the epoch has moved,
        and an HMAC is computed once for each token."""
        if len(given) != HMAC_BYTES:
            return None
        if epoch != self._epoch:
            self._follow(frozenset(token_ids))
            self._epoch = epoch
        token_id = self._ids.get(given)
        if token_id is None or not hmac.compare_digest(self._hmacs[token_id], given):
            return None
        return token_id

    def _follow(self, token_ids: frozenset[str]) -> None:
        for gone in self._hmacs.keys() - token_ids:
            del self._ids[self._hmacs.pop(gone)]
        for new in token_ids - self._hmacs.keys():
            self._hmacs[new] = self.hmac_of(new)
            self._ids[self._hmacs[new]] = new
