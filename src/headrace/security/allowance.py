"""What clients may use by their quotas, and how long they have to be held once they have used more.

Clients that share the entity of a quota share one allowance. How long it is held is remembered by the
allowance: a client that comes back over a new connection is held as long as the old one was.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.security.quota_lookup import Entity, ValuesOf, quota_of
from headrace.security.quota_meter import Meter

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"

MOST_CLIENTS: Final = 1000
"""With this many, all are looked up again, and what nobody uses goes: clients choose their own ids."""


class Allowance:
    __slots__ = ("_held_until_ms", "_meter", "bound")

    def __init__(self, bound: float, now_ms: int) -> None:
        self.bound = bound
        self._meter = Meter(now_ms)
        self._held_until_ms = now_ms

    def charge(self, amount: float, now_ms: int) -> int:
        """How long to use nothing from now on, in milliseconds."""
        self.spend(amount, now_ms)
        until = now_ms + self._meter.throttle_ms(self.bound, now_ms)
        self._held_until_ms = max(self._held_until_ms, until)
        return self.held_ms(now_ms)

    def spend(self, amount: float, now_ms: int) -> None:
        """The next charge counts it."""
        self._meter.record(amount, now_ms)

    def held_ms(self, now_ms: int) -> int:
        """0: it may be used."""
        return max(self._held_until_ms - now_ms, 0)

    def change_bound(self, bound: float, now_ms: int) -> None:
        """What was used stays used; how long that is held against anybody is decided by the next charge."""
        if bound != self.bound:
            self.bound = bound
            self._held_until_ms = now_ms

    def is_idle(self, now_ms: int) -> bool:
        """Whether a new one would be the same."""
        return not self.held_ms(now_ms) and not self._meter.rate(now_ms)


class ClientAllowances(NamedTuple):
    """Of one client. None: it has no such quota."""

    produce: Allowance | None
    fetch: Allowance | None
    request: Allowance | None


class Allowances:
    """Invariant: two clients have the same allowance exactly if they share the entity of the quota."""

    def __init__(self, values_of: ValuesOf) -> None:
        self._values_of = values_of
        self._clients: dict[tuple[str, str], ClientAllowances] = {}
        """By user and client id: what the look-ups have found."""
        self._by_holder: dict[tuple[str, Entity], Allowance] = {}

    def __len__(self) -> int:
        return len(self._by_holder)

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

    def _find(self, key: str, user: str, client_id: str, now_ms: int) -> Allowance | None:
        quota = quota_of(self._values_of, key, user, client_id)
        if quota is None:
            return None
        place = (key, quota.holder)
        allowance = self._by_holder.get(place)
        if allowance is None:
            allowance = self._by_holder[place] = Allowance(quota.bound, now_ms)
        else:
            allowance.change_bound(quota.bound, now_ms)
        return allowance

    def _forget_idle(self, now_ms: int) -> None:
        if len(self._clients) < MOST_CLIENTS:
            return
        self._clients.clear()
        for place in [place for place, each in self._by_holder.items() if each.is_idle(now_ms)]:
            del self._by_holder[place]
