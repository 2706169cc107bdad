"""An issuer's public keys (RFC 7517), by the name and the algorithm that a token says it was signed with.

A key serves the algorithms of its own kind and no other, so that no token can choose how a key is used: a
public key is never the secret of an HMAC. What is no such key is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from jwt import PyJWTError
from jwt.algorithms import AllowedPublicKeys, ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from headrace.core.errors import HeadraceError

ALGORITHMS: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)
MAX_KEYS: Final = 100
MAX_KID: Final = 256
RSA_BITS: Final = range(2048, 8193)
"""Smaller ones can be broken; larger ones would hold up the loop."""

_RSA: Final = frozenset(each for each in ALGORITHMS if each[:2] in ("RS", "PS"))
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_MEMBERS: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
"""Public ones only: an issuer that shows a private key by mistake does not make it ours."""


class InvalidKeySet(HeadraceError):
    pass


class Keys:
    """Invariant: every algorithm in it is one of ALGORITHMS and fits its key."""

    __slots__ = ("_by_name", "_names")

    def __init__(self, by_name: Mapping[tuple[str, str], AllowedPublicKeys]) -> None:
        self._by_name = by_name
        self._names = frozenset(kid for kid, _ in by_name)

    def __len__(self) -> int:
        return len(self._names)

    def knows(self, kid: str) -> bool:
        return kid in self._names

    def find(self, kid: str, algorithm: str) -> AllowedPublicKeys | None:
        return self._by_name.get((kid, algorithm))


NO_KEYS: Final = Keys({})


def read_keys(content: bytes) -> Keys:
    """Raises InvalidKeySet for what is no key set, and for one without a key that can be used."""
    try:
        entries = json.loads(content)["keys"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InvalidKeySet("this is no key set: it has no list of keys") from None
    if not isinstance(entries, list) or len(entries) > MAX_KEYS:
        raise InvalidKeySet(f"a key set has a list of at most {MAX_KEYS} keys")
    by_name: dict[tuple[str, str], AllowedPublicKeys] = {}
    for entry in entries:
        if isinstance(entry, dict) and (kid := _kid(entry)) is not None:
            for algorithm, key in _usable(entry):
                by_name.setdefault((kid, algorithm), key)
    if not by_name:
        raise InvalidKeySet("no key of the set has a name and can verify a signature")
    return Keys(by_name)


def _kid(entry: Mapping[str, Any]) -> str | None:
    kid = entry.get("kid")
    return kid if isinstance(kid, str) and 0 < len(kid) <= MAX_KID else None


def _usable(entry: Mapping[str, Any]) -> list[tuple[str, AllowedPublicKeys]]:
    operations = entry.get("key_ops", ["verify"])
    if entry.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        return []
    kind = entry.get("kty")
    if not isinstance(kind, str) or kind not in _MEMBERS:
        return []
    public = {name: entry.get(name) for name in _MEMBERS[kind]}
    if not all(isinstance(value, str) for value in public.values()):
        return []
    try:
        key, algorithms = _key(kind, {"kty": kind, **public})
    except (PyJWTError, ValueError, TypeError):
        return []
    named = entry.get("alg")
    return [(each, key) for each in sorted(algorithms) if named is None or named == each]


def _key(kind: str, public: dict[str, Any]) -> tuple[Any, frozenset[str]]:
    """The key, and the algorithms that it serves; none if it is too weak or of an unknown curve."""
    nothing: frozenset[str] = frozenset()
    if kind == "RSA":
        rsa: Any = RSAAlgorithm.from_jwk(public)
        return rsa, _RSA if rsa.key_size in RSA_BITS else nothing
    if kind == "EC":
        named = _CURVES.get(public["crv"])
        return ECAlgorithm.from_jwk(public), nothing if named is None else frozenset((named,))
    if public["crv"] != "Ed25519":
        return None, nothing
    return OKPAlgorithm.from_jwk(public), frozenset(("EdDSA",))
