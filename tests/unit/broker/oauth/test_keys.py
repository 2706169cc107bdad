"""Key sets: what is a key, and for which algorithms."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import RSAAlgorithm

from headrace.broker.oauth.keys import ALGORITHMS, MAX_KEYS, InvalidKeySet, read_keys
from tests.token_issuer import FOREIGN_KEY, KEYS, issuers_keys, key_set, public_jwk

RSA = public_jwk(KEYS["RS256"], "r")


def served(entry: dict[str, Any], kid: str = "r") -> set[str]:
    """The algorithms of a key; another one beside it makes it a set."""
    keys = read_keys(key_set(entry, public_jwk(KEYS["ES256"], "other")))
    return {each for each in ALGORITHMS if keys.find(kid, each) is not None}


def test_a_key_serves_the_algorithms_of_its_kind_and_no_other() -> None:
    keys = read_keys(issuers_keys())
    assert len(keys) == 3
    rsas = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
    for kid, expected in (("key-RS256", rsas), ("key-ES256", {"ES256"}), ("key-EdDSA", {"EdDSA"})):
        assert keys.knows(kid)
        for algorithm in (*ALGORITHMS, "HS256", "HS512", "none", ""):
            assert (keys.find(kid, algorithm) is not None) == (algorithm in expected)
    assert not keys.knows("key")
    assert not any(each.startswith("HS") or each == "none" for each in ALGORITHMS)


@pytest.mark.parametrize(
    ("curve", "algorithm"), [(ec.SECP384R1(), "ES384"), (ec.SECP521R1(), "ES512"), (ec.SECP256K1(), None)]
)
def test_curves(curve: ec.EllipticCurve, algorithm: str | None) -> None:
    entry = public_jwk(ec.generate_private_key(curve), "r")
    assert served(entry) == ({algorithm} if algorithm else set())


def test_a_key_that_names_its_algorithm_serves_only_that() -> None:
    assert served({**RSA, "alg": "PS384"}) == {"PS384"}
    for wrong in ("HS256", "ES256", "none", 7):
        assert served({**RSA, "alg": wrong}) == set()


@pytest.mark.parametrize(
    "change",
    [
        {"kid": None},
        {"kid": ""},
        {"kid": 7},
        {"kid": "k" * 257},
        {"use": "enc"},
        {"key_ops": ["sign"]},
        {"key_ops": "verify"},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": ["RSA"]},
        {"kty": "EC"},
        {"n": "!"},
        {"n": 5},
        {"e": "AA"},
    ],
)
def test_what_is_no_key_is_passed_over(change: dict[str, Any]) -> None:
    assert served({**RSA, **change}, kid="r") == set()


def test_keys_that_are_too_weak_are_passed_over() -> None:
    assert served(public_jwk(rsa.generate_private_key(65537, 1024), "r")) == set()


def test_a_private_key_is_taken_for_its_public_part() -> None:
    private = RSAAlgorithm.to_jwk(KEYS["RS256"], as_dict=True)
    keys = read_keys(key_set({**private, "kid": "r", "key_ops": ["verify"]}))
    assert isinstance(keys.find("r", "RS256"), rsa.RSAPublicKey)


def test_of_two_keys_with_the_same_name_the_first_counts() -> None:
    keys = read_keys(key_set(RSA, public_jwk(FOREIGN_KEY, "r")))
    found = keys.find("r", "RS256")
    assert isinstance(found, rsa.RSAPublicKey)
    assert found.public_numbers() == KEYS["RS256"].public_key().public_numbers()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"7",
        b'{"keys":{}}',
        b'{"keys":[]}',
        b'{"keys":[7,null,{}]}',
        b"[" * 100_000,
        json.dumps({"keys": [{}] * (MAX_KEYS + 1)}).encode(),
        key_set({"kty": "oct", "k": "c2VjcmV0", "kid": "r", "alg": "HS256"}),
    ],
    ids=range(10),
)
def test_what_is_no_key_set_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidKeySet):
        read_keys(content)
