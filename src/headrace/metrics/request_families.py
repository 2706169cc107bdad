"""What the time of requests was: work of the broker, waiting, and what clients were told to wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric, SummaryMetricFamily

from headrace.metrics.registry import BrokerMetrics

_SERIES: Final = 6
"""Of one API in all three families."""


def times_by_part(metrics: BrokerMetrics, size: int) -> Iterator[Metric]:
    """Each family has every request in its count, as with Kafka: one that did not wait, waited for 0 ms."""
    waited_us: Counter[str] = Counter()
    for api, _, counted in metrics.requests():
        waited_us[api] += counted.waited_us
    told_ms = metrics.quotas.told_ms
    apis = metrics.request_times()
    step = max(1, size // _SERIES)
    for start in range(0, len(apis) or 1, step):
        local, remote, throttle = _families()
        for api, times in apis[start : start + step]:
            count, waited = times.count, waited_us[api]
            local.add_metric((api,), count_value=count, sum_value=(times.sum_us - waited) / 1000)
            remote.add_metric((api,), count_value=count, sum_value=waited / 1000)
            throttle.add_metric((api,), count_value=count, sum_value=told_ms.get(api, 0))
        yield from (local, remote, throttle)


def _families() -> tuple[SummaryMetricFamily, SummaryMetricFamily, SummaryMetricFamily]:
    prefix, labels = "kafka_network_requestmetrics", ("request",)
    return (
        SummaryMetricFamily(
            f"{prefix}_localtimems",
            "Milliseconds in which the broker was at work on a request, before it answered or let it wait.",
            labels=labels,
        ),
        SummaryMetricFamily(
            f"{prefix}_remotetimems",
            "Milliseconds for which a request waited: for data, replicas, a disk, a turn, or another broker.",
            labels=labels,
        ),
        SummaryMetricFamily(
            f"{prefix}_throttletimems",
            "Milliseconds for which answers told clients to wait, because of a quota.",
            labels=labels,
        ),
    )
