"""What to do about a store that refuses, by the code that it gives: S3's, which others have taken over."""

from __future__ import annotations

from typing import Final

RIGHTS: Final = (
    "the user of this bucket needs the rights to read, write, delete and list objects"
    " (s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucket)"
)
_CREDENTIALS: Final = (
    "give the process credentials that the store knows (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, and"
    " AWS_SESSION_TOKEN only if they have one), and restart it: it reads its environment at its start"
)
_EXPIRED: Final = (
    "credentials in the environment of a process are not renewed: restart it with new ones, or let the"
    " machine lend it a role"
)
_CLOCK: Final = (
    "set the clock of this machine, or of the store: it refuses what was signed a quarter of an hour away"
    " from its own time"
)
_CURES: Final = {
    "InvalidAccessKeyId": _CREDENTIALS,
    "SignatureDoesNotMatch": _CREDENTIALS,
    "XAdminUserNotFound": _CREDENTIALS,
    "AuthenticationFailed": _CREDENTIALS,
    "InvalidToken": _EXPIRED,
    "ExpiredToken": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "RequestTimeTooSkewed": _CLOCK,
    "RequestExpired": _CLOCK,
    "AccessDenied": RIGHTS,
}


def cure_of(reason: str) -> str:
    """What to do about the reason of a refusal; empty if its code says nothing."""
    codes = (part.strip() for part in reason.split(":"))
    return next((_CURES[code] for code in codes if code in _CURES), "")
