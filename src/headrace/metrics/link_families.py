"""Linked partitions: how far the leaders of this broker are behind another cluster."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from headrace.metrics.registry import BrokerMetrics

_LABELS = ("topic", "partition")


def link_families(metrics: BrokerMetrics) -> Iterator[Metric]:
    """Nothing where nothing is linked."""
    lag = GaugeMetricFamily(
        "headrace_link_lag_records",
        "Records that are committed at the source and not here; -1 while nothing was heard.",
        labels=_LABELS,
    )
    lost = GaugeMetricFamily(
        "headrace_link_lost_records",
        "Records that were deleted at the source before this leader could copy them.",
        labels=_LABELS,
    )
    stopped = GaugeMetricFamily(
        "headrace_link_stopped",
        "1 where a partition is copied no more and a person is asked.",
        labels=_LABELS,
    )
    for link in metrics.read_links():
        labels = (link.topic, str(link.partition))
        lag.add_metric(labels, link.lag_records)
        lost.add_metric(labels, link.lost_records)
        stopped.add_metric(labels, float(link.is_stopped))
    if lag.samples:
        yield from (lag, lost, stopped)
