"""A histogram that costs one list increment: buckets are powers of two of a microsecond."""

from __future__ import annotations

from collections.abc import Sequence

BUCKETS = 33
"""Bucket k holds what lies in [2^(k-1), 2^k) microseconds; the last one holds all above 35 minutes."""

_LAST = BUCKETS - 1


class LatencyHistogram:
    """Plain numbers, touched by the event loop only. The count is the sum of the buckets."""

    __slots__ = ("counts", "sum_us")

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS
        self.sum_us = 0

    def observe(self, us: int) -> None:
        """`us` is a whole number of microseconds. A clock that ran backwards counts by its distance."""
        try:
            self.counts[us.bit_length()] += 1
        except IndexError:
            self.counts[_LAST] += 1
        self.sum_us += us

    @property
    def count(self) -> int:
        return sum(self.counts)


def upper_bound_us(bucket: int) -> int:
    return 1 << bucket


def cumulative(counts: list[int]) -> list[tuple[str, float]]:
    """Buckets as Prometheus wants them: each with all that lies below its bound, the last without bound.

    Only every second power of two from 16 us on is shown: halves the series, and nobody asks for less.
    """
    shown: list[tuple[str, float]] = []
    below = 0
    for bucket in range(BUCKETS - 1):
        below += counts[bucket]
        if bucket >= 4 and bucket % 2 == 0 and bucket <= 26:
            shown.append((str(upper_bound_us(bucket) / 1e6), below))
    shown.append(("+Inf", below + counts[BUCKETS - 1]))
    return shown


def quantiles_us(counts: Sequence[int], wanted: Sequence[float]) -> list[float]:
    """Estimates by a straight line inside the bucket where each quantile falls; 0 where nothing was seen.

    A bucket spans a factor of two, so an estimate is off by less than that.
    """
    total = sum(counts)
    return [_quantile(counts, total, quantile) for quantile in wanted]


def _quantile(counts: Sequence[int], total: int, quantile: float) -> float:
    rank = quantile * total
    below = 0
    for bucket, count in enumerate(counts):
        if count and below + count >= rank:
            lower = upper_bound_us(bucket - 1) if bucket else 0
            return lower + (upper_bound_us(bucket) - lower) * (rank - below) / count
        below += count
    return 0.0
