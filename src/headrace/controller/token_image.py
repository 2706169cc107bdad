"""Delegation tokens (KIP-48), as the committed records say them.

No record and no image holds the secret of a token: its HMAC follows from the token's id and a key that only
brokers have.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.security.principal import Principal


class DelegationToken(NamedTuple):
    token_id: str
    owner: Principal
    """Whoever authenticates with the token is this principal."""
    requester: Principal
    renewers: tuple[Principal, ...]
    issue_ms: int
    max_ms: int
    """No renewal makes the token last longer than this."""
    expiry_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return now_ms > self.expiry_ms or now_ms > self.max_ms

    def may_be_renewed_by(self, principal: Principal) -> bool:
        return principal == self.owner or principal in self.renewers


class TokenTable:
    __slots__ = ("by_id", "epoch")

    def __init__(self) -> None:
        self.by_id: dict[str, DelegationToken] = {}
        self.epoch = 0
        """Moves with every change."""

    def __len__(self) -> int:
        return len(self.by_id)

    def find(self, token_id: str) -> DelegationToken | None:
        return self.by_id.get(token_id)

    # --- changes: only replay calls these -----------------------------------------------------------------

    def put(self, token: DelegationToken) -> None:
        self.by_id[token.token_id] = token
        self.epoch += 1

    def remove(self, token_id: str) -> None:
        """A token that is not there is not missed."""
        if self.by_id.pop(token_id, None) is not None:
            self.epoch += 1
