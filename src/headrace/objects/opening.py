"""From the URL of a bucket to the object store behind it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from headrace.core.errors import ConfigError

if TYPE_CHECKING:
    from headrace.objects.obstore_bucket import ObstoreBucket
    from headrace.objects.s3_uploads import S3Uploads

SCHEMES: Final = ("s3", "gs", "az")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_CALL_SECONDS: Final = 24 * 3600
"""The client's own limit of a call. Each call has a deadline that is shorter."""


class ObstoreMissing(ConfigError):
    """The extra is not installed."""


def open_bucket(url: str, *, endpoint: str | None = None, region: str | None = None) -> ObstoreBucket:
    """A bucket, or a prefix of one: `s3://bucket/prefix`. Who we are, the store's own variables of the
    environment say (AWS_ACCESS_KEY_ID and the like), or the machine that this runs on."""
    for each in (url, endpoint or ""):
        _refuse_credentials(each)
    scheme = urlsplit(url).scheme
    if scheme not in SCHEMES or not urlsplit(url).netloc:
        raise ConfigError(f"{url} is not the URL of a bucket: write s3://BUCKET/PREFIX, gs:// or az://")
    if scheme != "s3" and (endpoint or region):
        raise ConfigError(f"an endpoint and a region belong to s3://, not to {scheme}://")
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url

        from headrace.objects.obstore_bucket import ObstoreBucket
    except ModuleNotFoundError as error:
        raise ObstoreMissing(
            f"{error.name} is not installed: object stores need `pip install 'headrace[tier]'`"
        ) from None
    try:
        store = from_url(
            url,
            config=_s3_settings(endpoint, region),
            client_options={"allow_http": _is_plain(endpoint, os.environ), "timeout": f"{_CALL_SECONDS}s"},
            retry_config={"max_retries": 0},
        )
    except (BaseError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"{url} cannot be opened: {reason}") from None
    return ObstoreBucket(store, _uploads(url, endpoint, region) if scheme == "s3" else None)


def _refuse_credentials(url: str) -> None:
    """They would stand in logs and in `headrace config list`. Nothing of the URL is repeated here."""
    parts = urlsplit(url)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigError(
            "the URL of a bucket or an endpoint names a place, without a user, a password, or what follows ?"
            " or #: credentials belong into the environment of the process"
        )


def _uploads(url: str, endpoint: str | None, region: str | None) -> S3Uploads | None:
    """None where the environment does not say who we are: a rule of the bucket has to end what is left."""
    from headrace.objects.s3_uploads import S3Uploads, credentials_of, place_of

    credentials = credentials_of(os.environ)
    if credentials is None:
        return None
    at = endpoint or next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
    named = (os.environ[name] for name in _REGIONS if os.environ.get(name))
    return S3Uploads(place_of(url, at, region or next(named, "us-east-1")), credentials)


def _s3_settings(endpoint: str | None, region: str | None) -> Any:
    given = {"endpoint": endpoint, "region": region}
    return {name: value for name, value in given.items() if value} or None


def _is_plain(endpoint: str | None, environment: Mapping[str, str]) -> bool:
    """HTTP is spoken where the endpoint says so in writing."""
    named = [endpoint, *(environment.get(name) for name in _ENDPOINTS)]
    return next((each for each in named if each), "").startswith("http://")
