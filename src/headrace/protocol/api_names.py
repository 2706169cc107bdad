"""What Kafka calls an API in metrics: `ApiVersions`, where the key is called `API_VERSIONS`."""

from __future__ import annotations

from functools import cache

from headrace.protocol.api_keys import ApiKey


@cache
def api_name(key: int) -> str:
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))
