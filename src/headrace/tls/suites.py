"""`ssl.cipher.suites`: Java's names of suites, as OpenSSL calls them.

Python chooses suites for TLS 1.2 only. A list that leaves out one of TLS 1.3 could not be kept, so it is
refused rather than ignored.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.core.errors import ConfigError

TLS_1_3: Final = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
"""What OpenSSL offers in TLS 1.3 by itself."""
_EXCHANGES: Final = {"ECDHE_ECDSA": "ECDHE-ECDSA", "ECDHE_RSA": "ECDHE-RSA", "DHE_RSA": "DHE-RSA"}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
TLS_1_2: Final = {
    f"TLS_{exchange}_WITH_{cipher}": f"{_EXCHANGES[exchange]}-{_CIPHERS[cipher]}"
    for exchange in _EXCHANGES
    for cipher in _CIPHERS
}
"""With forward secrecy and authenticated encryption; others are not offered."""


class Suites(NamedTuple):
    openssl: str
    """For `set_ciphers`; empty leaves the choice to OpenSSL."""
    versions: tuple[str, ...]


def suites(named: tuple[str, ...], versions: tuple[str, ...]) -> Suites:
    """What to offer in which versions of TLS. Raises ConfigError."""
    if not named:
        return Suites("", versions)
    unknown = [name for name in named if name not in TLS_1_2 and name not in TLS_1_3]
    if unknown:
        raise ConfigError(
            f"ssl.cipher.suites: {', '.join(unknown)} is not offered here; there are"
            f" {', '.join(sorted((*TLS_1_3, *TLS_1_2)))}"
        )
    older = [TLS_1_2[name] for name in named if name in TLS_1_2]
    missing = TLS_1_3 - set(named)
    if "TLSv1.3" in versions and missing:
        raise ConfigError(
            f"ssl.cipher.suites leaves out {', '.join(sorted(missing))} of TLS 1.3, and they cannot be chosen"
            " here: name all three, or set ssl.enabled.protocols=TLSv1.2"
        )
    kept = tuple(version for version in versions if version == "TLSv1.3" or older)
    if not kept:
        raise ConfigError("ssl.cipher.suites has no suite of the versions in ssl.enabled.protocols")
    return Suites(":".join(older), kept)
