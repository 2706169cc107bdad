"""A token bucket whose last token buys anything: who is not in debt takes any amount, and waits afterwards.

Kafka counts changes of metadata so (KIP-599), and bytes and time by the sum of eleven windows. That sum
forgets a debt with its oldest window, and lets a client that comes back just then have nearly a tenth more
than its quota. A bucket forgets nothing, and is one number.
"""

from __future__ import annotations


class TokenBucket:
    __slots__ = ("_at_ms", "_burst_seconds", "_is_shared", "_tokens", "rate")

    def __init__(self, rate: float, burst_seconds: float, now_ms: int, *, is_shared: bool = False) -> None:
        """`rate`: tokens a second. It begins full: with so many seconds' worth. If users share it who do not
        know of each other (`is_shared`), a debt for others is never longer than that either: nobody silences
        somebody else for long by what it takes."""
        self.rate = rate
        self._burst_seconds = burst_seconds
        self._is_shared = is_shared
        self._tokens = rate * burst_seconds
        self._at_ms = now_ms

    def charge(self, amount: float, now_ms: int) -> int:
        """Take the amount, and say how long whoever took it has to wait, in milliseconds."""
        self.take(amount, now_ms)
        wait_ms = self.wait_ms(now_ms)
        if self._is_shared:
            self._tokens = max(self._tokens, -self.rate * self._burst_seconds)
        return wait_ms

    def take(self, amount: float, now_ms: int) -> None:
        """What was taken and not used is given back as a negative amount."""
        self._refill(now_ms)
        self._tokens = min(self._tokens - amount, self.rate * self._burst_seconds)

    def wait_ms(self, now_ms: int) -> int:
        """How long until it is out of debt; 0: it is not in debt."""
        self._refill(now_ms)
        return 0 if self._tokens >= 0 else max(1, round(-self._tokens * 1000 / self.rate))

    def is_full(self, now_ms: int) -> bool:
        """Whether a new one would be the same."""
        self._refill(now_ms)
        return self._tokens >= self.rate * self._burst_seconds

    def change_rate(self, rate: float, now_ms: int) -> None:
        """A debt stays what it is, and is paid by the new rate."""
        if rate != self.rate:
            self._refill(now_ms)
            self.rate = rate
            self._tokens = min(self._tokens, rate * self._burst_seconds)

    def _refill(self, now_ms: int) -> None:
        if now_ms > self._at_ms:
            grown = self._tokens + (now_ms - self._at_ms) * self.rate / 1000
            self._tokens = min(grown, self.rate * self._burst_seconds)
            self._at_ms = now_ms
