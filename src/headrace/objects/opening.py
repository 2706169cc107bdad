"""From the URL of a bucket to the object store behind it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from headrace.core.errors import ConfigError

if TYPE_CHECKING:
    from headrace.objects.obstore_bucket import ObstoreBucket

SCHEMES: Final = ("s3", "gs", "az")
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_CALL_SECONDS: Final = 24 * 3600
"""The client's own limit of a call. Each call has a deadline that is shorter."""


class ObstoreMissing(ConfigError):
    """The extra is not installed."""


def open_bucket(url: str, *, endpoint: str | None = None, region: str | None = None) -> ObstoreBucket:
    """A bucket, or a prefix of one: `s3://bucket/prefix`. Who we are, the store's own variables of the
    environment say (AWS_ACCESS_KEY_ID and the like), or the machine that this runs on."""
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
    return ObstoreBucket(store)


def _s3_settings(endpoint: str | None, region: str | None) -> Any:
    given = {"endpoint": endpoint, "region": region}
    return {name: value for name, value in given.items() if value} or None


def _is_plain(endpoint: str | None, environment: Mapping[str, str]) -> bool:
    """HTTP is spoken where the endpoint says so in writing."""
    named = [endpoint, *(environment.get(name) for name in _ENDPOINTS)]
    return next((each for each in named if each), "").startswith("http://")
