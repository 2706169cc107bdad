"""Metrics of SASL: how many proved who they are, and how many did not."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from headrace.metrics.registry import BrokerMetrics


def authentication_families(metrics: BrokerMetrics) -> Iterator[Metric]:
    figures = metrics.authentication
    authentications = CounterMetricFamily(
        "headrace_authentications",
        "Peers that authenticated by SASL, and those that failed to.",
        labels=("kind", "outcome"),
    )
    authentications.add_metric(("first", "success"), figures.succeeded)
    authentications.add_metric(("first", "failure"), figures.failed)
    authentications.add_metric(("again", "success"), figures.reauthenticated)
    authentications.add_metric(("again", "failure"), figures.failed_again)
    yield authentications
    yield CounterMetricFamily(
        "headrace_expired_connections_killed",
        "Connections that were closed because they did not authenticate again in time.",
        value=figures.expired,
    )
