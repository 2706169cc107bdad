from __future__ import annotations

import pytest

from headrace.metrics.histogram import BUCKETS, LatencyHistogram, quantiles_us, upper_bound_us


@pytest.mark.parametrize("us", [0, 1, 2, 3, 4, 1000, 1023, 1024, 10**9, 2**31, 2**40])
def test_each_value_lands_in_the_bucket_that_holds_it(us: int) -> None:
    histogram = LatencyHistogram()
    histogram.observe(us)
    bucket = histogram.counts.index(1)
    lower = upper_bound_us(bucket - 1) if bucket else 0
    assert lower <= us
    assert us < upper_bound_us(bucket) or bucket == BUCKETS - 1
    assert (histogram.count, histogram.sum_us) == (1, us)


def test_quantiles_are_within_the_width_of_a_bucket() -> None:
    histogram = LatencyHistogram()
    for us in range(1, 10_001):
        histogram.observe(us)
    for quantile, estimate in zip(
        (0.5, 0.95, 0.99), quantiles_us(histogram.counts, (0.5, 0.95, 0.99)), strict=True
    ):
        assert quantile * 10_000 / 2 <= estimate <= quantile * 10_000 * 2


def test_quantiles_of_nothing_are_zero() -> None:
    assert quantiles_us(LatencyHistogram().counts, (0.5, 0.99)) == [0.0, 0.0]


def test_a_slow_few_show_in_the_high_quantile_only() -> None:
    histogram = LatencyHistogram()
    for _ in range(990):
        histogram.observe(100)
    for _ in range(10):
        histogram.observe(1_000_000)
    middle, high = quantiles_us(histogram.counts, (0.5, 0.999))
    assert middle < 128
    assert high > 500_000
