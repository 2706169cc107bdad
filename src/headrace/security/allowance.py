"""What clients may use by their quotas. Clients that share the entity of a quota share one bucket: a client
that comes back over a new connection has no more than it had."""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.security.quota_lookup import USER, Entity, ValuesOf, quota_of
from headrace.security.token_bucket import TokenBucket

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"

BURST_SECONDS: Final = 10
"""After a rest so many seconds' worth may be used at once, as Kafka's windows allow."""
MOST_CLIENTS: Final = 1000
"""With this many, all are looked up again, and what nobody uses goes: clients choose their own ids."""


class ClientAllowances(NamedTuple):
    """Of one client. None: it has no such quota."""

    produce: TokenBucket | None
    fetch: TokenBucket | None
    request: TokenBucket | None

    def most_in_debt(self, now_ms: int) -> TokenBucket | None:
        """The one that has to be waited for longest; None: none has to be."""
        found = max(
            (each for each in self if each is not None), key=lambda each: each.wait_ms(now_ms), default=None
        )
        return found if found is not None and found.wait_ms(now_ms) else None


class Allowances:
    """Invariant: two clients have the same bucket exactly if they share the entity of the quota."""

    def __init__(self, values_of: ValuesOf) -> None:
        self._values_of = values_of
        self._clients: dict[tuple[str, str], ClientAllowances] = {}
        """By user and client id: what the look-ups have found."""
        self._buckets: dict[tuple[str, Entity], TokenBucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def of(self, user: str, client_id: str, now_ms: int) -> ClientAllowances:
        known = self._clients.get((user, client_id))
        if known is None:
            self._forget_idle(now_ms)
            known = self._clients[user, client_id] = ClientAllowances(
                self._find(PRODUCE, user, client_id, now_ms),
                self._find(FETCH, user, client_id, now_ms),
                self._find(REQUEST, user, client_id, now_ms),
            )
        return known

    def look_up_again(self) -> None:
        """Quotas have changed."""
        self._clients.clear()

    def _find(self, key: str, user: str, client_id: str, now_ms: int) -> TokenBucket | None:
        quota = quota_of(self._values_of, key, user, client_id)
        if quota is None:
            return None
        place = (key, quota.holder)
        bucket = self._buckets.get(place)
        if bucket is None:
            is_shared = all(kind != USER for kind, _ in quota.holder)
            bucket = TokenBucket(quota.bound, BURST_SECONDS, now_ms, is_shared=is_shared)
            self._buckets[place] = bucket
        else:
            bucket.change_rate(quota.bound, now_ms)
        return bucket

    def _forget_idle(self, now_ms: int) -> None:
        if len(self._clients) < MOST_CLIENTS:
            return
        self._clients.clear()
        for place in [place for place, each in self._buckets.items() if each.is_full(now_ms)]:
            del self._buckets[place]
