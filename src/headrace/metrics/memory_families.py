"""What the broker holds on behalf of its peers, by kind of state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headrace.core.memory import MemoryShare


def memory_families(shares: Iterable[MemoryShare]) -> Iterator[Metric]:
    labels = ("kind",)
    used = GaugeMetricFamily("headrace_peer_memory_bytes", "Bytes held on behalf of peers.", labels=labels)
    limit = GaugeMetricFamily(
        "headrace_peer_memory_limit_bytes", "The most that they may hold.", labels=labels
    )
    refusals = CounterMetricFamily(
        "headrace_peer_memory_refusals",
        "How often a peer had to wait, was refused or lost something because the limit was reached.",
        labels=labels,
    )
    for share in shares:
        used.add_metric((share.kind,), share.used_bytes)
        limit.add_metric((share.kind,), share.limit_bytes)
        refusals.add_metric((share.kind,), share.refusals)
    yield from (used, limit, refusals)
