"""What can be asked of the controller about security, and what it answers: plain values, no wire messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headrace.controller.quota_image import QuotaEntity
from headrace.core.errors import HeadraceError
from headrace.security.acl import AclRule
from headrace.security.principal import Principal


class CreatedAcl(NamedTuple):
    rule: AclRule
    error: HeadraceError | None = None


class ScramDeletion(NamedTuple):
    user: str
    mechanism: int


@dataclass(frozen=True, slots=True, repr=False)
class ScramUpsertion:
    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.user!r}, mechanism={self.mechanism}, redacted)"


class AlteredScramUser(NamedTuple):
    user: str
    error: HeadraceError | None = None


class QuotaChange(NamedTuple):
    key: str
    value: float | None
    """None removes the quota."""


class QuotaAlteration(NamedTuple):
    entity: QuotaEntity
    """As it was asked for: a type may be unknown, or come twice."""
    changes: Sequence[QuotaChange]


class AlteredQuota(NamedTuple):
    entity: QuotaEntity
    error: HeadraceError | None = None


class NewToken(NamedTuple):
    requester: Principal
    owner: Principal | None = None
    """None: the requester."""
    renewers: Sequence[Principal] = ()
    max_lifetime_ms: int = -1
    """Not above zero: as long as the broker's setting allows."""


class TokenLifetimes(NamedTuple):
    max_lifetime_ms: int = 604_800_000
    """`delegation.token.max.lifetime.ms`"""
    expiry_time_ms: int = 86_400_000
    """`delegation.token.expiry.time.ms`: how long a token lasts without a renewal."""
