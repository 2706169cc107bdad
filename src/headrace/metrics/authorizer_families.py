"""The authorizer's counters as Prometheus families. Kafka has nothing of this kind."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from headrace.metrics.authorizer import AuthorizerMetrics


def authorizer_families(counted: AuthorizerMetrics) -> Iterator[Metric]:
    for name, counts, text in (
        ("headrace_authorizer_denied", counted.denied, "Rights that clients asked for and do not have."),
        (
            "headrace_authorizer_shadow_denied",
            counted.shadow_denied,
            "Rights that clients do not have and used all the same, in shadow mode.",
        ),
    ):
        family = CounterMetricFamily(name, text, labels=("operation", "resource_type"))
        for labels, count in counts.items():
            family.add_metric(labels, count)
        yield family
