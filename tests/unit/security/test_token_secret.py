from __future__ import annotations

import hashlib
import hmac

import pytest

from headrace.security.token_secret import HMAC_BYTES, TokenSecret


def test_the_secret_is_the_hmac_sha512_of_the_id() -> None:
    expected = hmac.new(b"key", b"id-1", hashlib.sha512).digest()
    assert TokenSecret(b"key").hmac_of("id-1") == expected
    assert len(expected) == HMAC_BYTES


def test_tokens_are_found_by_their_secret_as_they_come_and_go() -> None:
    secret = TokenSecret(b"key")
    one, two = secret.hmac_of("one"), secret.hmac_of("two")
    assert secret.find(one, [], 0) is None
    assert secret.find(one, ["one"], 0) is None, "the epoch says that nothing has changed"
    assert secret.find(one, ["one"], 1) == "one"
    assert secret.find(two, ["one", "two"], 2) == "two"
    assert secret.find(one, ["two"], 3) is None
    assert secret.find(two, ["two"], 3) == "two"
    for wrong in (b"", one[:-1], one + b"x", TokenSecret(b"other").hmac_of("two")):
        assert secret.find(wrong, ["two"], 3) is None


def test_a_key_is_needed_and_never_shown() -> None:
    with pytest.raises(ValueError, match="empty"):
        TokenSecret(b"")
    assert "CANARY" not in f"{TokenSecret(b'CANARY')!r}{TokenSecret(b'CANARY')}"
