"""How many partitions a client may create and delete (KIP-599). The active controller counts them.

A client that is not in debt creates a topic whole. In debt, each further topic is refused, and the answer
says when to come back. Versions that know no such error carry it out, and are told to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from headrace.broker.cluster.metadata_cache import MetadataCache
from headrace.broker.runtime.runtime import Runtime
from headrace.core.errors import ThrottlingQuotaExceeded
from headrace.metrics.quotas import CONTROLLER_MUTATION
from headrace.security.principal import Principal
from headrace.security.quota_lookup import Entity, quota_of
from headrace.security.token_bucket import TokenBucket

T = TypeVar("T")
R = TypeVar("R")

KEY: Final = "controller_mutation_rate"
BURST_SECONDS: Final = 11
"""`controller.quota.window.num` windows of a second."""
MOST_BUCKETS: Final = 1000
"""With this many, those go that are full: a new one would be the same."""


class Mutations:
    """What one request may still change."""

    def __init__(self, quotas: MutationQuotas, bucket: TokenBucket | None, *, is_strict: bool) -> None:
        self._quotas = quotas
        self._bucket = bucket
        self._is_strict = is_strict
        self.throttle_ms = 0
        """For the answer."""

    def take(self, partitions: int) -> ThrottlingQuotaExceeded | None:
        """Before a topic is changed: the error, if it may not be."""
        if self._bucket is None:
            return None
        now_ms = self._quotas.now_ms()
        wait_ms = self._bucket.wait_ms(now_ms)
        if wait_ms and self._is_strict:
            self._told(wait_ms)
            return ThrottlingQuotaExceeded(
                f"the client's quota of {self._bucket.rate:g} partitions a second is used up:"
                f" come back in {wait_ms} ms"
            )
        self._bucket.take(partitions, now_ms)
        if not self._is_strict:
            self._told(self._bucket.wait_ms(now_ms))
        return None

    def divide(
        self,
        wanted: Iterable[T],
        size_of: Callable[[T], int],
        refuse: Callable[[T, ThrottlingQuotaExceeded], R],
    ) -> tuple[list[T], list[R]]:
        """What may be changed, and the outcomes of what may not."""
        within, refused = [], []
        for each in wanted:
            error = self.take(size_of(each))
            if error is None:
                within.append(each)
            else:
                refused.append(refuse(each, error))
        return within, refused

    def give_back(self, partitions: int) -> None:
        """The change was refused for another reason."""
        if self._bucket is not None:
            self._bucket.take(-partitions, self._quotas.now_ms())

    def _told(self, wait_ms: int) -> None:
        if wait_ms > self.throttle_ms:
            self.throttle_ms = wait_ms
            self._quotas.count(wait_ms)


class MutationQuotas:
    def __init__(self, runtime: Runtime, metadata: MetadataCache) -> None:
        self._runtime = runtime
        self._metadata = metadata
        self._buckets: dict[Entity, TokenBucket] = {}

    def of(self, principal: Principal, client_id: str | None, *, is_strict: bool) -> Mutations:
        return Mutations(self, self._bucket(principal.name, client_id or ""), is_strict=is_strict)

    def now_ms(self) -> int:
        return self._runtime.monotonic_ms()

    def count(self, throttle_ms: int) -> None:
        self._runtime.metrics.quotas.throttled(CONTROLLER_MUTATION, throttle_ms)

    def _bucket(self, user: str, client_id: str) -> TokenBucket | None:
        quotas = self._metadata.image.quotas
        if not len(quotas):
            return None
        quota = quota_of(quotas.of, KEY, user, client_id)
        if quota is None:
            return None
        now_ms = self.now_ms()
        bucket = self._buckets.get(quota.holder)
        if bucket is None:
            self._forget_full(now_ms)
            bucket = self._buckets[quota.holder] = TokenBucket(quota.bound, BURST_SECONDS, now_ms)
        bucket.change_rate(quota.bound, now_ms)
        return bucket

    def _forget_full(self, now_ms: int) -> None:
        if len(self._buckets) >= MOST_BUCKETS:
            self._buckets = {who: each for who, each in self._buckets.items() if not each.is_full(now_ms)}
