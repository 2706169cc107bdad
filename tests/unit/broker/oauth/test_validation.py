"""Which tokens are believed, and above all which are not."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.oauth.keys import NO_KEYS, read_keys
from headrace.broker.oauth.validation import MAX_LIFETIME_MS, key_name, validate
from headrace.config.bearer_properties import BearerProperties
from headrace.security.oauth import BearerIdentity, InvalidBearerToken
from tests.token_issuer import AUDIENCE, FOREIGN_KEY, ISSUER, KEYS, issuers_keys, token

KEYS_OF_ISSUER = read_keys(issuers_keys())
NOW = 1_800_000_000
SKEW = 30
EXPECTED = BearerProperties(
    url="https://issuer.example/keys",
    directory=None,
    issuer=ISSUER,
    audience=("other", AUDIENCE),
    name_claim="sub",
    clock_skew_ms=1000 * SKEW,
    refresh_ms=1000,
    retry_ms=1,
    retry_max_ms=1,
)


def believed(text: str) -> BearerIdentity:
    return validate(text, KEYS_OF_ISSUER, EXPECTED, 1000 * NOW)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_a_good_token_is_its_user_until_it_expires(algorithm: str) -> None:
    assert believed(token(algorithm, now=NOW)) == BearerIdentity("alice", 1000 * (300 + SKEW))


def test_an_audience_may_be_one_of_several() -> None:
    assert believed(token(now=NOW, aud=["x", AUDIENCE])).name == "alice"


def part(content: Any) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": NOW, "exp": NOW + 300}


def unsigned(algorithm: str = "none") -> str:
    return f"{part({'alg': algorithm, 'kid': 'key-RS256'})}.{part(CLAIMS)}."


def by_hmac(encoding: Encoding, form: PublicFormat) -> str:
    """The public key, which everybody knows, as the secret of an HMAC."""
    secret = KEYS["RS256"].public_key().public_bytes(encoding, form)
    signed = f"{part({'alg': 'HS256', 'kid': 'key-RS256'})}.{part(CLAIMS)}"
    return f"{signed}.{part(hmac.new(secret, signed.encode(), hashlib.sha256).digest())}"


def by_hand(headers: dict[str, Any], claims: dict[str, Any] | None = None) -> str:
    """The library would not write everything that it may be asked to read."""
    head = {"alg": "EdDSA", "kid": "key-EdDSA", **headers}
    signed = f"{part(head)}.{part({**CLAIMS, **(claims or {})})}"
    return f"{signed}.{part(KEYS['EdDSA'].sign(signed.encode()))}"


def tampered() -> str:
    head, _, signature = token(now=NOW).split(".")
    return f"{head}.{part({**CLAIMS, 'sub': 'admin'})}.{signature}"


REFUSED: dict[str, tuple[Callable[[], str], str]] = {
    "none": (unsigned, "algorithm"),
    "None": (lambda: unsigned("NONE"), "algorithm"),
    "no signature": (lambda: unsigned("RS256"), "signature"),
    "HS256 with the public key": (
        lambda: by_hmac(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "algorithm",
    ),
    "HS256 with its DER": (lambda: by_hmac(Encoding.DER, PublicFormat.SubjectPublicKeyInfo), "algorithm"),
    "another's key": (lambda: token(now=NOW, key=FOREIGN_KEY), "signature"),
    "other claims": (tampered, "signature"),
    "an algorithm of another kind": (
        lambda: token("ES256", now=NOW, headers={"kid": "key-RS256"}),
        "key is not one",
    ),
    "wrong issuer": (lambda: token(now=NOW, iss="https://evil.example"), "issuer"),
    "an issuer that begins so": (lambda: token(now=NOW, iss=ISSUER + "x"), "issuer"),
    "no issuer": (lambda: token(now=NOW, iss=None), "lacks"),
    "wrong audience": (lambda: token(now=NOW, aud="others"), "audience"),
    "audiences": (lambda: token(now=NOW, aud=["a", "b"]), "audience"),
    "an audience that is no text": (lambda: token(now=NOW, aud=7), "audience"),
    "no audience": (lambda: token(now=NOW, aud=None), "lacks"),
    "expired": (lambda: token(now=NOW, exp=NOW - SKEW), "expired"),
    "no expiry": (lambda: token(now=NOW, exp=None), "lacks"),
    "an expiry that is no number": (lambda: token(now=NOW, exp="tomorrow"), "not a number"),
    "an expiry that is true": (lambda: token(now=NOW, exp=True), "not a number"),
    "an expiry at no time": (lambda: token(now=NOW, exp=10**400), "no time"),
    "not yet valid": (lambda: token(now=NOW, nbf=NOW + SKEW + 1), "not valid yet"),
    "issued tomorrow": (lambda: token(now=NOW, iat=NOW + 86_400, exp=NOW + 2 * 86_400), "not valid yet"),
    "no kid": (lambda: token(now=NOW, headers={"kid": None}), "does not name"),
    "an empty kid": (lambda: token(now=NOW, headers={"kid": ""}), "does not name"),
    "an unknown kid": (lambda: token(now=NOW, headers={"kid": "key-9"}), "key is not one"),
    "crit": (lambda: by_hand({"crit": ["b64"], "b64": True}), "header fields"),
    "b64": (lambda: by_hand({"b64": True}), "header fields"),
    "no user": (lambda: token(now=NOW, sub=None), "lacks"),
    "a user that is no text": (lambda: token(now=NOW, sub=7), "cannot be read|no name"),
    "an empty user": (lambda: token(now=NOW, sub=""), "no name"),
    "a user with a line break": (lambda: token(now=NOW, sub="alice\nbob"), "no name"),
    "a user of half a character": (lambda: token(now=NOW, sub="\ud800"), "no name"),
    "everybody": (lambda: token(now=NOW, sub="*"), "stands for others"),
    "nobody": (lambda: token(now=NOW, sub="ANONYMOUS"), "stands for others"),
    "a user with a blank before": (lambda: token(now=NOW, sub=" root"), "cannot be told from another"),
    "a long user": (lambda: token(now=NOW, sub="é" * 513), "too long"),
    "nothing": (lambda: "", "cannot be read"),
    "two parts": (lambda: "a.b", "cannot be read"),
    "no base64": (lambda: "!.!.!", "cannot be read"),
    "no JSON": (lambda: f"{part(b'{')}.{part(CLAIMS)}.x", "cannot be read"),
    "a list": (lambda: f"{part([])}.{part(CLAIMS)}.x", "cannot be read"),
    "deep JSON": (lambda: f"{part(b'[' * 20_000)}.{part(CLAIMS)}.x", "cannot be read"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_is_refused(name: str) -> None:
    make, reason = REFUSED[name]
    text = make()
    with pytest.raises(InvalidBearerToken, match=reason) as raised:
        believed(text)
    for piece in text.split("."):
        assert len(piece) < 4 or piece not in str(raised.value)
    assert "alice" not in str(raised.value)


def test_without_keys_nobody_is_believed() -> None:
    with pytest.raises(InvalidBearerToken, match="key is not one"):
        validate(token(now=NOW), NO_KEYS, EXPECTED, 1000 * NOW)


def test_clocks_may_differ_by_the_skew() -> None:
    late = token(now=NOW, exp=NOW - SKEW + 1)
    assert believed(late).lifetime_ms == 1000
    assert believed(token(now=NOW, nbf=NOW + SKEW, iat=NOW + SKEW)).name == "alice"


def test_another_claim_may_have_the_name() -> None:
    other = replace(EXPECTED, name_claim="preferred_username")
    named = token(now=NOW, preferred_username="bob")
    assert validate(named, KEYS_OF_ISSUER, other, 1000 * NOW).name == "bob"
    with pytest.raises(InvalidBearerToken, match="lacks"):
        validate(token(now=NOW), KEYS_OF_ISSUER, other, 1000 * NOW)


def test_no_token_lasts_for_ever() -> None:
    assert believed(token(now=NOW, exp=2**50)).lifetime_ms == MAX_LIFETIME_MS


def test_the_name_of_the_key_is_told_without_a_look_at_the_rest() -> None:
    assert key_name(token(key=FOREIGN_KEY)) == "key-RS256"
    for text in ("", "a.b.c", token(headers={"kid": ""}), f"{part(b'[' * 20_000)}.x.y"):
        assert key_name(text) is None


def test_a_huge_token_costs_little() -> None:
    """The message that carries it has at most 32 KB."""
    long = token(now=NOW, groups=["group" * 10] * 600)
    assert len(long) > 30_000
    nonsense = f"{part({'alg': 'RS256', 'kid': 'key-RS256'})}.{'A' * 31_000}.{'A' * 342}"
    began = time.process_time()
    assert believed(long).name == "alice"
    with pytest.raises(InvalidBearerToken):
        believed(nonsense)
    assert time.process_time() - began < 0.1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
GOOD_TOKEN = token("ES256", now=NOW)


def outcome(text: str) -> BearerIdentity | None:
    try:
        return believed(text)
    except InvalidBearerToken:
        return None


@given(st.text() | st.text("ab.-_=", max_size=40))
def test_no_text_is_believed(text: str) -> None:
    assert key_name(text) is None
    assert outcome(text) is None


@given(st.data())
def test_a_token_with_another_byte_is_no_other_token(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(GOOD_TOKEN) - 1))
    other = data.draw(st.sampled_from("ABCabc019-_."))
    # The last letter of a part has bits that say nothing.
    assert outcome(GOOD_TOKEN[:at] + other + GOOD_TOKEN[at + 1 :]) in (None, believed(GOOD_TOKEN))


@given(
    claims=st.dictionaries(st.sampled_from(["iss", "aud", "sub", "exp", "nbf", "iat"]), JSON),
    headers=st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jku", "jwk"]), JSON),
)
def test_whatever_an_issuer_signs_is_believed_or_refused(
    claims: dict[str, Any], headers: dict[str, Any]
) -> None:
    found = outcome(by_hand(headers, claims))
    if found is not None:
        assert claims.get("iss", ISSUER) == ISSUER
        assert found.name == claims.get("sub", "alice")
        assert not headers.keys() & {"alg", "crit", "b64"} or headers.get("alg") == "EdDSA"
