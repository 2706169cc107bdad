"""The counters of client quotas as Prometheus families."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headrace.metrics.quotas import QuotaMetrics


def quota_families(counted: QuotaMetrics) -> Iterator[Metric]:
    throttles = CounterMetricFamily(
        "headrace_quota_throttles",
        "Requests and connections that were over a client quota.",
        labels=("quota",),
    )
    seconds = CounterMetricFamily(
        "headrace_quota_throttle_seconds", "For how long clients were told to wait.", labels=("quota",)
    )
    for quota, count in counted.throttles.items():
        throttles.add_metric((quota,), count)
        seconds.add_metric((quota,), counted.throttle_ms[quota] / 1000)
    yield throttles
    yield seconds
    yield GaugeMetricFamily(
        "headrace_quota_muted_connections",
        "Connections that are not read because their clients are over a quota.",
        value=counted.muted,
    )
