"""What a broker exports, as Prometheus stores it: the names of series, and the labels of each."""

from __future__ import annotations

from functools import cache
from typing import Final

from prometheus_client import ProcessCollector
from prometheus_client.core import CollectorRegistry, Metric

from headrace.core.ports_coordination import SessionState
from headrace.metrics.collector import BrokerCollector
from headrace.metrics.registry import BrokerMetrics, PartitionGauges, ZooKeeperGauges

SCRAPED: Final = frozenset(("instance", "job", "namespace", "pod"))
"""Labels that Prometheus adds, the last two in Kubernetes."""
_SUFFIXES: Final = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum"),
    "summary": ("", "_count", "_sum"),
    "unknown": ("",),
}
_OWN_LABEL: Final = {"_bucket": "le", "": "quantile"}


@cache
def exported() -> dict[str, frozenset[str]]:
    metrics = BrokerMetrics()
    metrics.topic("orders")
    metrics.read_partitions = lambda: [PartitionGauges("t", 0, 1, 2, 3, 4, lag=0)]
    metrics.read_loop_seconds = lambda: 0.0
    metrics.read_zookeeper = lambda: ZooKeeperGauges(SessionState.CONNECTED, 0.0)
    metrics.read_certificates = lambda: [("SSL", 60.0)]
    families = [
        *BrokerCollector(metrics, lambda: 0.0).collect(),
        *ProcessCollector(registry=CollectorRegistry()).collect(),
    ]
    found = {"up": frozenset[str]()}
    for family in families:
        for suffix in _SUFFIXES[family.type]:
            found[family.name + suffix] = _labels(family, suffix)
    return found


def _labels(family: Metric, suffix: str) -> frozenset[str]:
    labels = {*getattr(family, "_labelnames", ()), *(name for each in family.samples for name in each.labels)}
    if family.type in ("histogram", "summary") and suffix in _OWN_LABEL:
        labels.add(_OWN_LABEL[suffix])
    return frozenset(labels)
