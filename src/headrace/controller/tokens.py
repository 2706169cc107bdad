"""Delegation tokens (KIP-48): made, renewed, expired.

Who a token is for is decided here; who asks for it was authenticated elsewhere. Time is an argument.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import islice
from typing import Final

from headrace.controller.image import MetadataImage
from headrace.controller.operations import RecordGroup, Result
from headrace.controller.security_operations import NewToken, TokenLifetimes
from headrace.controller.security_records import token_record
from headrace.controller.token_image import DelegationToken
from headrace.core.errors import InvalidRequest
from headrace.core.ports import Random
from headrace.protocol.stored.remove_delegation_token_record import RemoveDelegationTokenRecord
from headrace.security.errors import (
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    InvalidPrincipalType,
)
from headrace.security.mechanism import MAX_NAME_BYTES
from headrace.security.principal import USER, Principal

MAX_RENEWERS: Final = 100
"""Every broker keeps them for as long as the token exists."""
SWEPT_AT_ONCE: Final = 500


def create_token(
    image: MetadataImage, new: NewToken, lifetimes: TokenLifetimes, *, now_ms: int, random: Random
) -> Result[DelegationToken]:
    """Raises InvalidPrincipalType or InvalidRequest."""
    owner = new.requester if new.owner is None else new.owner
    _check_principals([owner, *new.renewers])
    lifetime_ms = lifetimes.max_lifetime_ms
    if new.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, new.max_lifetime_ms)
    token = DelegationToken(
        token_id=_new_id(image, random),
        owner=owner,
        requester=new.requester,
        renewers=tuple(dict.fromkeys(new.renewers)),
        issue_ms=now_ms,
        max_ms=now_ms + lifetime_ms,
        expiry_ms=now_ms + min(lifetime_ms, lifetimes.expiry_time_ms),
    )
    return Result([[token_record(token)]], token)


def _check_principals(principals: Sequence[Principal]) -> None:
    if len(principals) > 1 + MAX_RENEWERS:
        raise InvalidRequest(f"a token has at most {MAX_RENEWERS} renewers")
    for principal in principals:
        if principal.type != USER:
            raise InvalidPrincipalType("the owner and the renewers of a token are users")
        if not 0 < len(principal.name.encode()) <= MAX_NAME_BYTES:
            raise InvalidRequest(f"the name of a user has 1 to {MAX_NAME_BYTES} bytes")


def _new_id(image: MetadataImage, random: Random) -> str:
    """In URL-safe base64 like Kafka's ids, and never with a leading dash, which tools take for an option."""
    while True:
        token_id = base64.urlsafe_b64encode(random.randbytes(16)).decode().rstrip("=")
        if token_id[0] != "-" and image.tokens.find(token_id) is None:
            return token_id


def renew_token(
    image: MetadataImage,
    token_id: str | None,
    by: Principal,
    period_ms: int,
    lifetimes: TokenLifetimes,
    *,
    now_ms: int,
) -> Result[int]:
    """The answer is when the token expires now. A period that is not above zero is the broker's setting."""
    token = _find(image, token_id)
    if token.is_expired(now_ms):
        raise DelegationTokenExpired("the token has expired")
    _check_may_renew(token, by)
    if period_ms > 0:
        period_ms = min(period_ms, lifetimes.expiry_time_ms)
    else:
        period_ms = lifetimes.expiry_time_ms
    return _with_expiry(token, now_ms + period_ms)


def expire_token(
    image: MetadataImage, token_id: str | None, by: Principal, period_ms: int, *, now_ms: int
) -> Result[int]:
    """The answer is when the token expires now. A negative period ends it at once, expired or not."""
    token = _find(image, token_id)
    _check_may_renew(token, by)
    if period_ms < 0:
        return Result([[RemoveDelegationTokenRecord(token_id=token.token_id)]], now_ms)
    if token.is_expired(now_ms):
        raise DelegationTokenExpired("the token has expired")
    return _with_expiry(token, now_ms + period_ms)


def remove_expired(image: MetadataImage, *, now_ms: int, most: int = SWEPT_AT_ONCE) -> Result[int]:
    """The answer is how many: if it is `most`, ask again."""
    expired = (token.token_id for token in image.tokens.by_id.values() if token.is_expired(now_ms))
    group: RecordGroup = [RemoveDelegationTokenRecord(token_id=each) for each in islice(expired, most)]
    return Result([group] if group else [], len(group))


def _find(image: MetadataImage, token_id: str | None) -> DelegationToken:
    token = None if token_id is None else image.tokens.find(token_id)
    if token is None:
        raise DelegationTokenNotFound("there is no such token")
    return token


def _check_may_renew(token: DelegationToken, by: Principal) -> None:
    if not token.may_be_renewed_by(by):
        raise DelegationTokenOwnerMismatch("only the owner of a token and its renewers may change it")


def _with_expiry(token: DelegationToken, expiry_ms: int) -> Result[int]:
    renewed = token._replace(expiry_ms=min(token.max_ms, expiry_ms))
    return Result([[token_record(renewed)]], renewed.expiry_ms)
