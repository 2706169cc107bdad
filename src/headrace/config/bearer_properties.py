"""The `sasl.oauthbearer.` properties of one listener, checked together. Nothing is read from disk here.

Whatever is missing stops the start: a broker that does not know whom to believe would believe everybody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from headrace.config.broker_properties.oauth import OAuthProperties as Declared
from headrace.config.tls_properties import ValueOf
from headrace.core.errors import ConfigError

_URL: Final = Declared.sasl_oauthbearer_jwks_endpoint_url.name
_DIRECTORY: Final = Declared.headrace_oauthbearer_allowed_directory.name


@dataclass(frozen=True, slots=True)
class BearerProperties:
    url: str
    """https:, or file: below `directory`."""
    directory: str | None
    issuer: str
    audience: tuple[str, ...]
    name_claim: str
    clock_skew_ms: int
    refresh_ms: int
    retry_ms: int
    retry_max_ms: int

    @property
    def file(self) -> str | None:
        """The path of a file: URL."""
        parts = urlsplit(self.url)
        return unquote(parts.path) if parts.scheme == "file" else None


def bearer_properties(value_of: ValueOf) -> BearerProperties:
    """Raises ConfigError."""
    url = value_of(Declared.sasl_oauthbearer_jwks_endpoint_url) or ""
    issuer = value_of(Declared.sasl_oauthbearer_expected_issuer) or ""
    audience = tuple(each for each in value_of(Declared.sasl_oauthbearer_expected_audience) if each)
    name_claim = value_of(Declared.sasl_oauthbearer_sub_claim_name)
    missing = [
        declared.name
        for declared, value in (
            (Declared.sasl_oauthbearer_jwks_endpoint_url, url),
            (Declared.sasl_oauthbearer_expected_issuer, issuer),
            (Declared.sasl_oauthbearer_expected_audience, audience),
            (Declared.sasl_oauthbearer_sub_claim_name, name_claim),
        )
        if not value
    ]
    if missing:
        raise ConfigError(f"OAUTHBEARER needs {', '.join(missing)}")
    directory = value_of(Declared.headrace_oauthbearer_allowed_directory) or None
    _check_url(url, directory)
    return BearerProperties(
        url,
        directory,
        issuer,
        audience,
        name_claim,
        1000 * value_of(Declared.sasl_oauthbearer_clock_skew_seconds),
        value_of(Declared.sasl_oauthbearer_jwks_endpoint_refresh_ms),
        value_of(Declared.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms),
        value_of(Declared.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms),
    )


def _check_url(url: str, directory: str | None) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ConfigError(f"{_URL}: this is not a URL") from None
    if parts.scheme == "https":
        if not parts.hostname or parts.username is not None or parts.password is not None:
            raise ConfigError(f"{_URL}: an https: URL has a host, and no user or password")
    elif parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
            raise ConfigError(f"{_URL}: a file: URL has a whole path, as in file:///etc/headrace/keys.json")
        if not directory:
            raise ConfigError(f"{_URL}: a file is read only below {_DIRECTORY}, which is not set")
    else:
        raise ConfigError(f"{_URL}: keys come by https: or from a file:, where nobody can change them")
