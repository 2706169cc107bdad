"""The history in the object store as Prometheus families: Kafka's names where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headrace.metrics.tiering import TierGauges, TieringMetrics

_KAFKA = "kafka_server_brokertopicmetrics"


def tiering_families(counted: TieringMetrics, tiers: Iterable[TierGauges]) -> Iterator[Metric]:
    for name, count, text in (
        ("remotecopybytes", counted.copied_bytes, "Bytes of segments copied to the object store."),
        ("remotecopyrequests", counted.copy_requests, "Segments that were to be copied there."),
        ("remotecopyerrors", counted.copy_errors, "Copies that failed, and are tried again."),
        ("remotefetchbytes", counted.fetched_bytes, "Bytes fetched from the object store for consumers."),
        ("remotefetchrequests", counted.fetch_requests, "Pieces of history that were to be fetched."),
        ("remotefetcherrors", counted.fetch_errors, "Pieces that could not be fetched."),
        ("remotedeleterequests", counted.delete_requests, "Deletions of objects that were given up."),
        ("remotedeleteerrors", counted.delete_errors, "Deletions that failed, and are tried again."),
    ):
        yield CounterMetricFamily(f"{_KAFKA}_{name}", text, value=count)
    yield CounterMetricFamily(
        "kafka_server_remotelogmanager_remotecopythrottletime_seconds",
        "Time that copies waited for remote.log.manager.copy.max.bytes.per.second.",
        value=counted.throttled_ms / 1000,
    )
    families = [
        GaugeMetricFamily(
            f"{_KAFKA}_remotecopylagbytes", "Bytes of sealed segments not copied.", labels=["topic"]
        ),
        GaugeMetricFamily(f"{_KAFKA}_remotecopylagsegments", "Sealed segments not copied.", labels=["topic"]),
        GaugeMetricFamily(
            "headrace_tier_copy_lag_seconds", "For how long the oldest of them waits.", labels=["topic"]
        ),
        GaugeMetricFamily(f"{_KAFKA}_remotelogsizebytes", "Bytes in the object store.", labels=["topic"]),
        GaugeMetricFamily(
            "headrace_tier_stopped_partitions",
            "Partitions whose history is neither extended nor shortened until somebody looks.",
            labels=["topic"],
        ),
    ]
    for tier in tiers:
        for family, value in zip(families, tier[1:], strict=True):
            family.add_metric([tier.topic], value)
    yield from families
