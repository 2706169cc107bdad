"""Every metric that a broker exports, from its own collector: name, kind, labels and help."""

from __future__ import annotations

from typing import Final

from headrace.core.ports_coordination import SessionState
from headrace.metrics.collector import BrokerCollector
from headrace.metrics.registry import BrokerMetrics, PartitionGauges, ZooKeeperGauges
from headrace.metrics.tiering import TierGauges

_INTRODUCTION: Final = """\
# Exported metrics

What `/metrics` has, written from the broker's collector when this site was built. [Metrics](metrics.md) says
how to switch it on, what each group means and what to alert on.

| Name | Kind | Labels | Help |
|---|---|---|---|
"""


def render() -> str:
    metrics = BrokerMetrics()
    metrics.read_partitions = lambda: [PartitionGauges("t", 0, 1, 2, 3, 4, lag=0)]
    metrics.read_loop_seconds = lambda: 0.0
    metrics.read_zookeeper = lambda: ZooKeeperGauges(SessionState.CONNECTED, 0.0)
    metrics.read_certificates = lambda: [("SSL", 60.0)]
    metrics.read_tiers = lambda: [TierGauges("t", 0, 0, 0.0, 0, 0)]
    rows = {}
    for family in BrokerCollector(metrics, lambda: 0.0).collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = [*getattr(family, "_labelnames", ()), *_quantile(family.type)]
        shown = ", ".join(f"`{label}`" for label in labels)
        rows[name] = f"| `{name}` | {family.type} | {shown} | {family.documentation} |\n"
    return _INTRODUCTION + "".join(rows[name] for name in sorted(rows))


def _quantile(kind: str) -> tuple[str, ...]:
    """The labels that the format adds by itself."""
    return {"summary": ("quantile",), "histogram": ("le",)}.get(kind, ())
