"""Groups and transactions as Prometheus families, under the names that Kafka's have where it has them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric, UnknownMetricFamily

from headrace.metrics.coordinators import CoordinatorCounts, CoordinatorMetrics

_CLASSIC_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
_CONSUMER_STATES = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
_GROUPS = "kafka_coordinator_group_groupmetadatamanager_numgroups"
_MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager"


def coordinator_families(metrics: CoordinatorMetrics, counts: CoordinatorCounts) -> Iterator[Metric]:
    yield from _groups(counts)
    yield from _transactions(counts)
    failures = UnknownMetricFamily(
        "kafka_server_addpartitionstotxnmanager_verificationfailurerate_count",
        "Partitions for which a transaction's coordinator could not be asked, or said no.",
    )
    failures.add_metric((), metrics.verification_failures)
    yield failures


def _groups(counts: CoordinatorCounts) -> Iterator[Metric]:
    classic, consumer = counts.classic_groups, counts.consumer_groups
    yield GaugeMetricFamily(
        _GROUPS, "Groups of the classic protocol coordinated here.", value=sum(classic.values())
    )
    for state in _CLASSIC_STATES:
        yield GaugeMetricFamily(
            f"{_GROUPS}{state.lower()}", f"Of these, in state {state}.", value=classic.get(state, 0)
        )
    by_protocol = GaugeMetricFamily(
        "kafka_server_group_coordinator_metrics_group_count",
        "Groups coordinated here, by their protocol.",
        labels=("protocol",),
    )
    by_protocol.add_metric(("classic",), sum(classic.values()))
    by_protocol.add_metric(("consumer",), sum(consumer.values()))
    yield by_protocol
    by_state = GaugeMetricFamily(
        "kafka_server_group_coordinator_metrics_consumer_group_count",
        "Groups of the consumer protocol coordinated here, by their state.",
        labels=("state",),
    )
    for state in _CONSUMER_STATES:
        by_state.add_metric((state,), consumer.get(state, 0))
    yield by_state


def _transactions(counts: CoordinatorCounts) -> Iterator[Metric]:
    by_state = GaugeMetricFamily(
        "headrace_transactional_ids", "Transactional ids coordinated here, by their state.", labels=("state",)
    )
    for state, count in sorted(counts.transactional_ids.items()):
        by_state.add_metric((state,), count)
    yield by_state
    for name, value, text in (
        (
            f"{_MARKERS}_unknowndestinationqueuesize",
            counts.markers_without_leader,
            "Ends of transactions that wait for a leader of their partition.",
        ),
        (
            f"{_MARKERS}_logappendretryqueuesize",
            counts.ends_to_write_again,
            "Transactions that are over everywhere, which their coordinator could not write down yet.",
        ),
        (
            "kafka_server_replicamanager_produceridcount",
            counts.producers,
            "Producers that the partitions of this broker remember.",
        ),
        (
            "kafka_server_replicamanager_partitionswithlatetransactionscount",
            counts.partitions_with_late_transactions,
            "Partitions led here with a transaction that should have been ended long ago.",
        ),
    ):
        yield GaugeMetricFamily(name, text, value=value)
