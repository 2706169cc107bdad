"""Whether a bearer token is believed: a JWT (RFC 7519) that a known key has signed, for us, and for now.

No refusal repeats anything of the token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import jwt
from jwt.types import Options

from headrace.broker.oauth.keys import ALGORITHMS, Keys
from headrace.config.bearer_properties import BearerProperties
from headrace.security.mechanism import MAX_NAME_BYTES
from headrace.security.oauth import BearerIdentity, InvalidBearerToken

MAX_LIFETIME_MS: Final = 10 * 365 * 86_400_000
"""A token that says that it lasts for longer ends then."""
_LAST_SECOND: Final = 2**53

_REFUSALS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (jwt.InvalidIssuerError, "its issuer (iss) is not the expected one"),
    (jwt.InvalidAudienceError, "it is not meant for us: its audience (aud) is not an expected one"),
    (jwt.MissingRequiredClaimError, "it lacks one of iss, aud, exp and the claim with the user's name"),
    (jwt.InvalidSignatureError, "its signature is wrong"),
)
_RESERVED: Final = ("*", "ANONYMOUS")
"""Who is meant by these in rules is everybody, or whoever has not authenticated."""


def key_name(token: str) -> str | None:
    """The name of the key that a token says it was signed with."""
    try:
        kid = jwt.get_unverified_header(token).get("kid")
    except (jwt.PyJWTError, ValueError, RecursionError):
        return None
    return kid if isinstance(kid, str) and kid else None


def validate(token: str, keys: Keys, expected: BearerProperties, now_ms: int) -> BearerIdentity:
    """Raises InvalidBearerToken."""
    try:
        claims = _verified(token, keys, expected)
    except InvalidBearerToken:
        raise
    except Exception as error:  # of a library, about a token that is stranger than any we know
        for kind, text in _REFUSALS:
            if isinstance(error, kind):
                raise InvalidBearerToken(text) from None
        raise InvalidBearerToken(f"it cannot be read: {type(error).__name__}") from None
    lifetime_ms = _lifetime_ms(claims, expected.clock_skew_ms, now_ms)
    return BearerIdentity(_name(claims.get(expected.name_claim)), lifetime_ms)


def _verified(token: str, keys: Keys, expected: BearerProperties) -> Mapping[str, Any]:
    header = jwt.get_unverified_header(token)
    kid, algorithm = header.get("kid"), header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise InvalidBearerToken("it is not signed by an algorithm that is accepted")
    if "crit" in header or "b64" in header:
        raise InvalidBearerToken("it has header fields that nobody here understands")
    if not isinstance(kid, str) or not kid:
        raise InvalidBearerToken("it does not name its key (kid)")
    key = keys.find(kid, algorithm)
    if key is None:
        raise InvalidBearerToken("its key is not one of the issuer's")
    # Times are ours to compare: the library would ask a clock of its own.
    options: Options = {
        "require": ["iss", "aud", "exp", expected.name_claim],
        "verify_exp": False,
        "verify_nbf": False,
        "verify_iat": False,
    }
    claims: Mapping[str, Any] = jwt.decode(
        token,
        key,
        algorithms=[algorithm],
        audience=list(expected.audience),
        issuer=expected.issuer,
        options=options,
    )
    return claims


def _lifetime_ms(claims: Mapping[str, Any], skew_ms: int, now_ms: int) -> int:
    """What is left of it, with the difference of clocks that is allowed."""
    for name in ("nbf", "iat"):
        if name in claims and _ms(claims[name]) - skew_ms > now_ms:
            raise InvalidBearerToken(f"it is not valid yet ({name})")
    left_ms = _ms(claims["exp"]) + skew_ms - now_ms
    if left_ms <= 0:
        raise InvalidBearerToken("it has expired (exp)")
    return min(left_ms, MAX_LIFETIME_MS)


def _ms(seconds: Any) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidBearerToken("a time in it is not a number")
    if not 0 <= seconds <= _LAST_SECOND or math.isnan(seconds):
        raise InvalidBearerToken("a time in it is no time")
    return int(seconds * 1000)


def _name(value: Any) -> str:
    """Of a user, as other mechanisms take it, and without what could not be written in a rule."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InvalidBearerToken("the claim with the user's name is no name")
    if len(value.encode()) > MAX_NAME_BYTES:
        raise InvalidBearerToken("the user's name is too long")
    if value in _RESERVED or value != value.strip():
        raise InvalidBearerToken("the user's name stands for others in rules, or cannot be told from another")
    return value
