from __future__ import annotations

import pytest

from headrace.core.store_refusals import cure_of


@pytest.mark.parametrize(
    ("reason", "cure"),
    [
        ("403 Forbidden: SignatureDoesNotMatch: The signature does not match.", "restart it"),
        ("403 Forbidden: InvalidAccessKeyId: It does not exist.", "give the process credentials"),
        ("404 Not Found: XAdminUserNotFound: No user exists.", "give the process credentials"),
        ("400 Bad Request: ExpiredToken: The token has expired.", "not renewed"),
        ("403 Forbidden: RequestTimeTooSkewed: The difference is too large.", "set the clock"),
        ("403 Forbidden: AccessDenied: no", "s3:GetObject"),
    ],
)
def test_what_to_do_follows_from_the_code(reason: str, cure: str) -> None:
    assert cure in cure_of(reason)


@pytest.mark.parametrize(
    "reason", ["", "no answer within 5 s", "403 Forbidden", "an ExpiredToken in a sentence"]
)
def test_what_has_no_code_has_no_cure(reason: str) -> None:
    assert cure_of(reason) == ""
