"""What the broker gets from outside: turns of its event loop, room on its disks, certificates."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from headrace.metrics.histogram import cumulative
from headrace.metrics.registry import BrokerMetrics


def host_families(metrics: BrokerMetrics) -> Iterator[Metric]:
    lag = HistogramMetricFamily(
        "headrace_event_loop_lag_seconds",
        "How late the event loop came to a timer, ten times a second. Meanwhile it served nobody.",
    )
    lag.add_metric((), cumulative(metrics.loop_lag.counts), sum_value=metrics.loop_lag.sum_us / 1e6)
    yield lag
    free = GaugeMetricFamily(
        "headrace_log_directory_free_bytes", "Room in each log directory.", labels=("directory",)
    )
    total = GaugeMetricFamily(
        "headrace_log_directory_total_bytes",
        "Size of the file system of each log directory.",
        labels=("directory",),
    )
    full = GaugeMetricFamily(
        "headrace_log_directory_full",
        "1 while producers are refused because the log directory has too little room.",
        labels=("directory",),
    )
    for space in metrics.read_spaces():
        free.add_metric((space.path,), space.free_bytes)
        total.add_metric((space.path,), space.total_bytes)
        full.add_metric((space.path,), float(space.is_full))
    yield from (free, total, full)
    yield CounterMetricFamily(
        "headrace_produce_refused_disk_full",
        "Batches of producers that were refused because their log directory has too little room.",
        value=metrics.refused_by_full_disks,
    )
    expiry = GaugeMetricFamily(
        "headrace_tls_certificate_expiry_seconds",
        "For how long the certificate of a listener still holds; negative after its end.",
        labels=("listener",),
    )
    for listener, seconds in metrics.read_certificates():
        expiry.add_metric((listener,), seconds)
    if expiry.samples:
        yield expiry
