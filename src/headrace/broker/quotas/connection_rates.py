"""How often an address may open a connection (KIP-612).

A connection that comes too early is accepted, held and closed: a client that is refused at once would come
back at once. It does not count, so an address that is throttled gets as many as its quota says.
"""

from __future__ import annotations

from typing import Final

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.config.security_checks import broker_listeners
from headrace.controller.quota_image import IP
from headrace.metrics.quotas import CONNECTION
from headrace.security.allowance import BURST_SECONDS
from headrace.security.token_bucket import TokenBucket

KEY: Final = "connection_creation_rate"
MOST_HELD_SECONDS: Final = 1.0
MOST_ADDRESSES: Final = 1000
"""With this many, those go that have opened nothing lately."""


class ConnectionRates:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self._runtime = runtime
        self._metadata = metadata
        config = runtime.config
        is_shared = len(config.bound_listeners) == 1  # clients come by it too
        self._broker_listeners = frozenset() if is_shared else broker_listeners(config)
        self._buckets: dict[str, TokenBucket] = {}

    def delay(self, host: str, listener: str) -> float:
        """0, or the seconds after which a new connection is closed."""
        bound = self._bound(host)
        if bound is None or listener in self._broker_listeners:
            return 0.0
        now_ms = self._runtime.monotonic_ms()
        bucket = self._buckets.get(host)
        if bucket is None:
            self._forget_idle(now_ms)
            bucket = self._buckets[host] = TokenBucket(bound, BURST_SECONDS, now_ms)
        bucket.change_rate(bound, now_ms)
        throttle_ms = bucket.charge(1, now_ms)
        if not throttle_ms:
            return 0.0
        bucket.take(-1, now_ms)
        self._runtime.metrics.quotas.throttled(CONNECTION, throttle_ms)
        return min(throttle_ms / 1000, MOST_HELD_SECONDS)

    def _bound(self, host: str) -> float | None:
        quotas = self._metadata.image.quotas
        if not len(quotas):
            return None
        own = quotas.of(((IP, host),)).get(KEY)
        return quotas.of(((IP, None),)).get(KEY) if own is None else own

    def _forget_idle(self, now_ms: int) -> None:
        if len(self._buckets) >= MOST_ADDRESSES:
            self._buckets = {host: each for host, each in self._buckets.items() if not each.is_full(now_ms)}
