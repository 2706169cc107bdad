"""A token bucket whose last token buys anything: who is not in debt takes any amount, and waits afterwards.

Kafka counts changes of metadata so (KIP-599): a topic is created whole, however many partitions it has.
"""

from __future__ import annotations


class TokenBucket:
    __slots__ = ("_at_ms", "_tokens", "burst", "rate")

    def __init__(self, rate: float, burst_seconds: float, now_ms: int) -> None:
        """`rate`: tokens a second."""
        self.rate = rate
        self.burst = rate * burst_seconds
        self._tokens = self.burst
        self._at_ms = now_ms

    def wait_ms(self, now_ms: int) -> int:
        """How long until it is out of debt; 0: it is not in debt."""
        self._refill(now_ms)
        return 0 if self._tokens >= 0 else max(1, round(-self._tokens * 1000 / self.rate))

    def take(self, amount: float, now_ms: int) -> None:
        """What was taken and not used is given back as a negative amount."""
        self._refill(now_ms)
        self._tokens = min(self._tokens - amount, self.burst)

    def is_full(self, now_ms: int) -> bool:
        self._refill(now_ms)
        return self._tokens >= self.burst

    def _refill(self, now_ms: int) -> None:
        if now_ms > self._at_ms:
            grown = self._tokens + (now_ms - self._at_ms) * self.rate / 1000
            self._tokens = min(grown, self.burst)
            self._at_ms = now_ms
